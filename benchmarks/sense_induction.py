"""Senses that a language model with a KerBS head finds, against those that people tell apart.

    python -m benchmarks.sense_induction --data-dir COARSEWSD --wikitext WIKITEXT2 --wic WIC

`COARSEWSD` is the folder of CoarseWSD-20, one sub-folder a noun; `WIKITEXT2` and `WIC` hold
`train.txt` and `{train,dev,test}.{data,gold}.txt`. A GRU language model is trained on WikiText-2
and the nouns' training sentences, mixed by lines and lower-cased. Then, for each test sentence of a
noun, the hidden state that predicts the noun gives the posterior over the noun's senses. Its argmax
is held against the gold sense: V-measure and purity, beside k-means on the same hidden states with
as many clusters as the noun has senses, and each beside chance: the same assignment, shuffled.

A left-to-right model predicts a word from what stands before it: that posterior has not seen the
words after. With `--tied` the input embeddings are the senses' too, so that the words after a noun
can be read once for each of its senses, and tell which of them makes them likeliest:

    p(sense | left, right) = p(sense | left) p(right | left, sense) / p(right | left)

These posteriors "by the sentence" are judged beside the others.

In Word-in-Context pairs two occurrences of a word are said to have the same sense if their
posteriors are similar enough; the threshold is chosen on the training and development pairs.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import sklearn
from sklearn.cluster import KMeans
from sklearn.metrics import v_measure_score
from sklearn.metrics.cluster import contingency_matrix

import keras_drill
from benchmarks.timing import describe
from keras_drill.data import ContiguousBatches, EncodedText, TextLines, Vocabulary
from keras_drill.data import WhitespaceTokenizer as Tokenizer
from keras_drill.models import GRULanguageBackbone

CONTEXT = 64  # words before the noun, at most
RIGHT = 32  # words after it, at most
SHUFFLES = 20


def main():
    arguments = parse_arguments()
    keras.utils.set_random_seed(arguments.seed)
    nouns = sorted(path.name for path in arguments.data_dir.iterdir() if path.is_dir())
    vocabulary, text, noun_text = read_text(arguments, nouns)
    missing = [noun for noun in nouns if noun not in vocabulary.tokens]
    if missing:
        raise SystemExit(f"Not in a vocabulary of {len(vocabulary)} words: {missing}")
    model = build_model(arguments, len(vocabulary))
    print(f"{describe()}, scikit-learn {sklearn.__version__}")
    print(f"{len(text.ids)} tokens, {len(vocabulary)} words, {model.head.num_senses} senses")
    if arguments.weights and arguments.weights.exists():
        model.load_weights(arguments.weights)
    train(model, text.ids, arguments.epochs, arguments)
    train(model, noun_text.ids, arguments.noun_epochs, arguments)
    report_allocation(model.head, vocabulary, nouns)
    report_nouns(model, vocabulary, arguments, nouns)
    report_pairs(model, vocabulary, arguments)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of CoarseWSD-20")
    parser.add_argument("--wikitext", type=Path, required=True, help="folder of WikiText-2")
    parser.add_argument("--wic", type=Path, required=True, help="folder of Word-in-Context")
    parser.add_argument("--vocabulary", type=int, default=8000, help="most words")
    parser.add_argument("--senses", type=float, default=2.5, help="senses per word, on average")
    parser.add_argument("--units", type=int, default=256, help="units of the first of two layers")
    parser.add_argument("--dim", type=int, default=128, help="width of embeddings and senses")
    parser.add_argument("--tied", action="store_true", help="embed words by their senses")
    parser.add_argument("--batch", type=int, default=40, help="rows of text")
    parser.add_argument("--length", type=int, default=35, help="tokens per row and step")
    parser.add_argument("--epochs", type=int, default=1, help="on all text")
    parser.add_argument("--noun-epochs", type=int, default=0, help="then, on the nouns' sentences")
    parser.add_argument("--interval", type=int, default=100, help="steps between allocations")
    parser.add_argument("--momentum", type=float, default=0.005)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--dtype", default="mixed_bfloat16", help="Keras dtype policy")
    parser.add_argument(
        "--weights",
        type=Path,
        help="a .weights.h5 file: read if it is there, written after training",
    )
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def read_text(arguments, nouns):
    """The vocabulary, the training text, and the part of it that is the nouns' sentences.

    The lines of both are shuffled.
    """
    lines = (arguments.wikitext / "train.txt").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line.strip()]
    sentences = []
    for noun in nouns:
        sentences += [line for _, line, _ in read_sentences(arguments.data_dir, noun, "train")]
    lines += sentences
    rng = np.random.default_rng(arguments.seed)
    rng.shuffle(lines)
    rng.shuffle(sentences)
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "all.txt"), Path(folder, "nouns.txt")
        for path, content in zip(paths, (lines, sentences), strict=True):
            path.write_text("\n".join(content).lower() + "\n", encoding="utf-8")
        texts = [TextLines(path) for path in paths]
        vocabulary = Vocabulary.build(texts[0], Tokenizer(), max_size=arguments.vocabulary)
        return vocabulary, *(EncodedText.encode(text, Tokenizer(), vocabulary) for text in texts)


def read_sentences(folder, noun, split):
    """Place of the noun, sentence, gold sense."""
    data = (folder / noun / f"{split}.data.txt").read_text(encoding="utf-8").splitlines()
    gold = (folder / noun / f"{split}.gold.txt").read_text(encoding="utf-8").split()
    places, sentences = zip(*(line.split("\t", 1) for line in data), strict=True)
    return list(zip(map(int, places), sentences, map(int, gold), strict=True))


def build_model(arguments, size):
    num_senses = int(arguments.senses * size)
    # Wide, so that the senses of a word begin apart.
    initializer = keras.initializers.RandomUniform(-0.2, 0.2, seed=arguments.seed)
    embedding = None
    if arguments.tied:
        embedding = keras_drill.SenseEmbedding(
            size,
            arguments.dim,
            num_senses,
            embeddings_initializer=initializer,
            dtype=arguments.dtype,
        )
    backbone = GRULanguageBackbone(
        size,
        embedding_dim=arguments.dim,
        units=arguments.units,
        num_layers=2,
        dropout=0.1,
        hidden_dropout=0.1,
        input_dropout=0.1,
        stateful=True,
        batch_size=arguments.batch,
        seed=arguments.seed,
        embedding=embedding,
        dtype=arguments.dtype,
    )
    own = {} if embedding else {"num_senses": num_senses, "embeddings_initializer": initializer}
    head = keras_drill.KernelizedBayesianSoftmax(size, embedding, dtype=arguments.dtype, **own)
    model = keras_drill.LanguageModel(backbone, head)
    model.build((arguments.batch, None))
    return model


def train(model, ids, epochs, arguments):
    if not epochs:
        return
    batches = ContiguousBatches(ids, arguments.batch, arguments.length)
    steps = epochs * batches.num_batches
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, steps, warmup_target=arguments.learning_rate, warmup_steps=steps // 20
    )
    model.compile(
        keras.optimizers.Adam(rate, clipnorm=1.0), metrics=[keras_drill.metrics.Perplexity()]
    )
    reallocation = keras_drill.SenseReallocation(
        arguments.interval,
        keras_drill.senses.policies.IdleSensePolicy(),
        momentum=arguments.momentum,
    )
    start, cpu = time.time(), time.process_time()
    callbacks = [
        keras_drill.callbacks.ResetState(),
        reallocation,
        keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda step, logs: (
                step % 50 == 49
                and print(f"step {step + 1} of {batches.num_batches}: {logs}", flush=True)
            )
        ),
    ]
    for epoch in range(epochs):
        model.fit(
            batches.dataset(epoch),
            initial_epoch=epoch,
            epochs=epoch + 1,
            verbose=2,
            callbacks=callbacks,
        )
        if arguments.weights:
            model.save_weights(arguments.weights)
    print(f"trained in {time.time() - start:.0f} s, {time.process_time() - cpu:.0f} s of CPU")
    print("senses moved:", *[record["moves"] for record in reallocation.history])


def hidden_states(model, vocabulary, contexts):
    """`[N, d]`, the state that predicts what follows each of `contexts`, lists of words."""
    places = {word: place for place, word in enumerate(vocabulary.tokens)}
    rows = np.zeros((len(contexts), CONTEXT + 1), "int32")
    last = np.zeros(len(contexts), int)
    for row, words in enumerate(contexts):
        ids = [places.get(word.lower(), vocabulary.unknown_id) for word in words[-CONTEXT:]]
        ids = [vocabulary.end_id, *ids]
        rows[row, : len(ids)] = ids
        last[row] = len(ids) - 1
    hidden = []
    for start in range(0, len(rows), 256):
        part = slice(start, start + 256)
        state = model.backbone.initial_state(len(rows[part]))
        # A state of its own, so that the carried one is left alone.
        states = model.backbone(rows[part], initial_state=state)
        states = np.asarray(keras.ops.convert_to_numpy(keras.ops.cast(states, "float32")))
        hidden.append(states[np.arange(len(states)), last[part]])
    return np.concatenate(hidden)


def posteriors(model, hidden, words):
    values = model.head.sense_posteriors(hidden, np.asarray(words, "int32"))
    return np.asarray(keras.ops.convert_to_numpy(keras.ops.cast(values, "float32")))


def sentence_posteriors(model, vocabulary, sentences, words):
    """`[N, S]`, posteriors by the whole sentence, of a model whose input is tied to its senses.

    Args:
        sentences: N pairs of a place and a list of words.
        words: The number of the word at each place.
    """
    left = [sentence[:place] for place, sentence in sentences]
    prior = posteriors(model, hidden_states(model, vocabulary, left), words)
    numbers = {word: number for number, word in enumerate(vocabulary.tokens)}
    ids = np.full((len(sentences), CONTEXT + RIGHT + 2), vocabulary.end_id)
    places, ends = np.zeros((2, len(sentences)), int)  # of the word itself, and of the last word
    for row, (place, sentence) in enumerate(sentences):
        start = max(0, place - CONTEXT)
        part = sentence[start : place + RIGHT + 1]
        ids[row, 1 : len(part) + 1] = [
            numbers.get(word.lower(), vocabulary.unknown_id) for word in part
        ]
        places[row], ends[row] = place - start + 1, len(part)
    steps = np.arange(1, ids.shape[1])
    counted = (steps > places[:, None]) & (steps <= ends[:, None])
    senses = senses_per_word(model.head)[words]
    with np.errstate(divide="ignore"):
        logs = np.log(prior)
    for column in range(prior.shape[1]):
        for start in range(0, len(ids), 256):
            part = slice(start, start + 256)
            columns = np.minimum(column, senses[part] - 1)  # a sense too many has prior 0
            hidden = states_of_senses(model, ids[part], places[part], columns)
            log_probs = np.zeros(counted[part].shape)
            log_probs[counted[part]] = keras.ops.convert_to_numpy(
                model.head.log_prob(hidden[counted[part]], ids[part, 1:][counted[part]])
            )
            logs[part, column] += log_probs.sum(axis=-1)
    logs = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return logs / logs.sum(axis=-1, keepdims=True)


def states_of_senses(model, ids, places, columns):
    """`[N, L - 1, d]`, the states that predict all words of `ids` `[N, L]` but the first.

    The words at `places` `[N]` are read as the senses in `columns` `[N]`, one for each.
    """
    embedding = model.backbone.embedding
    look_up = embedding.look_up
    held = np.arange(embedding.allocation.max_senses) == columns[:, None]  # [N, S]
    is_place = np.arange(ids.shape[1] - 1)[:, None] == places  # [L - 1, N]
    allowed = np.where(is_place[..., None], held, True)

    def look_up_held(words):
        senses, mask, *rest = look_up(words)
        return senses, keras.ops.logical_and(mask, allowed), *rest

    state = model.backbone.initial_state(len(ids))
    with mock.patch.object(embedding, "look_up", look_up_held):
        states = model.backbone(ids[:, :-1], initial_state=state)
    return keras.ops.convert_to_numpy(keras.ops.cast(states, "float32"))


def purity(gold, clusters) -> float:
    return contingency_matrix(gold, clusters).max(axis=0).sum() / len(gold)


def senses_per_word(head) -> np.ndarray:
    sense_to_word = keras.ops.convert_to_numpy(head.allocation.sense_to_word)
    return np.bincount(sense_to_word, minlength=head.vocabulary_size)


def report_allocation(head, vocabulary, nouns):
    counts = senses_per_word(head)
    theta = np.asarray(keras.ops.convert_to_numpy(head.theta))
    print("words by number of senses:", np.bincount(counts)[1:].tolist())
    print("theta, 5 % / median / 95 %:", np.round(np.quantile(theta, [0.05, 0.5, 0.95]), 2))
    print("occurrences in training:")
    print(*[f"{noun} {vocabulary.counts[vocabulary.tokens.index(noun)]}" for noun in nouns])


def report_nouns(model, vocabulary, arguments, nouns):
    """V-measure and purity of each noun: KerBS, k-means, chance."""
    rng = np.random.default_rng(arguments.seed)
    counts = senses_per_word(model.head)
    names = ["KerBS", "by the sentence", "k-means"] if arguments.tied else ["KerBS", "k-means"]
    columns = " | ".join(f"{name} | chance" for name in names)
    print("\nV-measure and purity, each beside chance:")
    print(f"| noun | sentences | gold | senses | in use | V {columns} | P {columns} | majority |")
    print("|---|" + "--:|" * (5 + 4 * len(names)))
    rows = []
    for noun in nouns:
        sentences = read_sentences(arguments.data_dir, noun, "test")
        gold = np.array([sense for *_, sense in sentences])
        sentences = [(place, sentence.split()) for place, sentence, _ in sentences]
        hidden = hidden_states(model, vocabulary, [line[:place] for place, line in sentences])
        word = vocabulary.tokens.index(noun)
        words = np.full(len(gold), word)
        clusters = posteriors(model, hidden, words).argmax(-1)
        found = {"KerBS": [clusters]}
        if arguments.tied:
            by_sentence = sentence_posteriors(model, vocabulary, sentences, words)
            found["by the sentence"] = [by_sentence.argmax(-1)]
        # The mean over restarts, so that k-means' own luck does not count.
        found["k-means"] = [
            KMeans(counts[word], n_init=10, random_state=seed).fit_predict(hidden)
            for seed in range(5)
        ]
        row = [
            mean_score(score, gold, partitions)
            for score in (v_measure_score, purity)
            for name in names
            for partitions in (
                found[name],
                [rng.permutation(x) for x in found[name] for _ in range(SHUFFLES)],
            )
        ]
        row.append(np.bincount(gold).max() / len(gold))
        rows.append(row)
        sizes = f"{len(gold)} | {len(set(gold))} | {counts[word]} | {len(set(clusters))}"
        print(f"| {noun} | {sizes} |", " | ".join(f"{value:.3f}" for value in row), "|", flush=True)
    mean = " | ".join(f"{value:.3f}" for value in np.mean(rows, axis=0))
    print(f"| mean | | | | | {mean} |\n")


def mean_score(score, gold, partitions) -> float:
    return np.mean([score(gold, partition) for partition in partitions])


def report_pairs(model, vocabulary, arguments):
    """Accuracy on Word-in-Context pairs."""
    places = {word: place for place, word in enumerate(vocabulary.tokens)}
    counts = senses_per_word(model.head)
    similar, same = {}, {}
    for split in ("train", "dev", "test"):
        pairs, gold = read_pairs(arguments.wic, split)
        forms = [[words[i].lower() for i, words in pair] for pair in pairs]
        known = np.array([a == b and a in places for a, b in forms])
        several = np.array([counts[places.get(a, 0)] > 1 for a, _ in forms])
        usable = known & several
        kept = [pair for pair, use in zip(pairs, usable, strict=True) if use]
        words = [places[pair[0][1][pair[0][0]].lower()] for pair in kept]
        hidden = [
            hidden_states(model, vocabulary, [pair[side][1][: pair[side][0]] for pair in kept])
            for side in (0, 1)
        ]
        posterior = [posteriors(model, states, words) for states in hidden]
        gold = gold[usable]
        similar[split] = {
            "posteriors": (cosine(*posterior), gold),
            "hidden states": (cosine(*hidden), gold),
        }
        if arguments.tied:
            posterior = [
                sentence_posteriors(model, vocabulary, [pair[side] for pair in kept], words)
                for side in (0, 1)
            ]
            similar[split]["posteriors by the sentence"] = (cosine(*posterior), gold)
        same[split] = (posterior[0].argmax(-1) == posterior[1].argmax(-1)) == gold
        print(f"WiC {split}: {len(pairs)} pairs, {np.sum(~known)} with a word that is not in the "
              f"vocabulary or has two forms, {np.sum(known & ~several)} with a single sense, "
              f"{len(kept)} judged, {np.mean(gold):.3f} of them true; "
              f"same argmax: accuracy {np.mean(same[split]):.3f}")  # fmt: skip
    for name in similar["test"]:
        values, gold = (
            np.concatenate([similar[split][name][i] for split in ("train", "dev")]) for i in (0, 1)
        )
        thresholds = np.quantile(values, np.linspace(0, 1, 201))
        threshold = max(thresholds, key=lambda t: np.mean((values >= t) == gold))
        values, gold = similar["test"][name]
        accuracy = np.mean((values >= threshold) == gold)
        print(f"WiC test, similarity of {name} above {threshold:.3f}: accuracy {accuracy:.3f}")


def read_pairs(folder, split):
    """Pairs `((place, words), (place, words))`, and whether their sense is the same."""
    data = (folder / f"{split}.data.txt").read_text(encoding="utf-8").splitlines()
    gold = (folder / f"{split}.gold.txt").read_text(encoding="utf-8").split()
    pairs = []
    for line in data:
        _, _, places, *contexts = line.split("\t")
        words = [context.split() for context in contexts]
        pairs.append(tuple(zip(map(int, places.split("-")), words, strict=True)))
    return pairs, np.array([answer == "T" for answer in gold])


def cosine(left, right):
    norms = np.linalg.norm(left, axis=-1) * np.linalg.norm(right, axis=-1)
    return np.sum(left * right, axis=-1) / np.maximum(norms, 1e-12)


if __name__ == "__main__":
    main()
