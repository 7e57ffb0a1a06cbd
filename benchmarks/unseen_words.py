"""Measures the probabilities of words that did not occur in training, by their descriptions.

    python -m benchmarks.unseen_words --data ptb [--seeds 0 1] [--epochs 6] [--folder runs/unseen]
        [--encoder PRESET [--definitions FILE]]

A share of a text's rarer words is held out: in training they are `<unk>`. A small LSTM language
model is trained with a tied softmax, and with a `DescriptionLabelEncoder` that reads the words'
bytes, or (`--encoder`) what a pretrained encoder of keras-hub makes of each word alone, or of its
definition (`--definitions`: lines of a word, a tab and its definition, such as those of
`python -m benchmarks.wordnet_definitions`; words that have none are read alone), with and without
dropout of embeddings. Then the held-out words are added, and test text is scored, where
they stand in the targets (in the inputs they stay `<unk>`, for all alike):

- spread: their probability is that of `<unk>`, spread by training counts;
- mean embedding: the mean of all labels is their label;
- bytes, encoder, definitions: their label is made of their description (`OutputLayer.with_words`);
- bytes, in <unk>, and the like: the same labels, but all held-out words together get
  what `spread` gives them, so that no other word's probability changes.

All are given the held-out words' counts: where they have a bias of their own it is the one that
other words of such a count have (least squares on log counts), and `<unk>` is made less probable
by the share of its occurrences that are theirs. All are distributions over the same words, so
their perplexities compare.

The same command resumes an interrupted study after the last finished epoch.
"""

import argparse
import json
import math
import statistics
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np

import keras_drill
from keras_drill.data import word_bytes
from keras_drill.models import AWDLSTM, TextEncoder

WIDTH, UNITS = 64, 128
ROWS, LENGTH = 16, 70
NUM_BYTES = 12
UNKNOWN, END = "<unk>", "<eos>"
# Name: dropout of embeddings, None for the tied softmax. The first word says what describes words.
MODELS = {
    "tied": None,
    "bytes": 0.0,
    "bytes, dropout 0.3": 0.3,
    "encoder": 0.0,
    "encoder, dropout 0.3": 0.3,
    "definitions, dropout 0.3": 0.3,
    "words and definitions, dropout 0.3": 0.3,
}


class Text(NamedTuple):
    """Encoded splits. Held-out words have the last ids, and are `<unk>` in training and inputs.

    Attributes:
        words: Words by id.
        num_known: How many of them are in training.
        counts: `[V]`, occurrences in the training text, those of held-out words in the text that
            was held from them; `<unk>`'s are its own.
        splits: Ids of train, valid and test text.
    """

    words: list[str]
    num_known: int
    counts: np.ndarray
    splits: dict[str, np.ndarray]

    @property
    def unknown_id(self) -> int:
        return self.words.index(UNKNOWN)

    def as_read(self, ids: np.ndarray) -> np.ndarray:
        return np.where(ids < self.num_known, ids, self.unknown_id)


def load(data: Path, share: float, first_rank: int, part: float, seed: int) -> Text:
    """Reads `*train*`, `*valid*` and `*test*` of a folder, words between blanks."""
    texts = {}
    for split in ("train", "valid", "test"):
        (file,) = data.glob(f"*{split}*")
        lines = file.read_text(encoding="utf-8").splitlines()
        texts[split] = [word for line in lines for word in (*line.split(), END)]
    texts["train"] = texts["train"][: round(part * len(texts["train"]))]
    counts = Counter(texts["train"])
    if UNKNOWN not in counts:
        raise ValueError(f"The training text must have words {UNKNOWN}. Received: {data}")
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    rarer = [word for word in ranked[first_rank:] if word != UNKNOWN]
    rng = np.random.default_rng(seed)
    held_out = set(rng.choice(rarer, round(share * len(ranked)), replace=False))
    known = [word for word in ranked if word not in held_out]
    words = known + [word for word in ranked if word in held_out]
    places = {word: place for place, word in enumerate(words)}
    unknown = places[UNKNOWN]
    splits = {
        split: np.array([places.get(word, unknown) for word in text], "int32")
        for split, text in texts.items()
    }
    return Text(words, len(known), np.array([counts[word] for word in words]), splits)


def read_definitions(file: Path) -> dict[str, str]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines)


def describe_words(
    name: str, text: Text, encoder: TextEncoder, definitions: dict[str, str]
) -> np.ndarray | None:
    """`[V, ...]`, what a model is told of all words, held-out ones too."""
    if name == "tied":
        return None
    if name.startswith("bytes"):
        return word_bytes(text.words, NUM_BYTES)
    told = {word: word for word in text.words}
    if name.startswith("definitions"):
        told |= definitions
    if name.startswith("words and definitions"):
        told |= {word: f"{word}: {definition}" for word, definition in definitions.items()}
    vectors = encoder.embed([told[word] for word in text.words])
    vectors = vectors - vectors[: text.num_known].mean(axis=0)
    return vectors / vectors[: text.num_known].std()


def is_embedded(name: str) -> bool:
    """Whether a model is told what an encoder makes of texts."""
    return name != "tied" and not name.startswith("bytes")


def missing_options(name: str, args: argparse.Namespace) -> list[str]:
    """The options that a model needs and that were not given."""
    needed = {}
    if is_embedded(name):
        needed["--encoder"] = args.encoder
    if "definitions" in name:
        needed["--definitions"] = args.definitions
    return [option for option, given in needed.items() if not given]


def make_model(
    text: Text, descriptions: np.ndarray | None, dropout: float | None, seed: int
) -> keras_drill.LanguageModel:
    keras.utils.set_random_seed(seed)
    backbone = AWDLSTM(
        text.num_known,
        embedding_dim=WIDTH,
        units=UNITS,
        num_layers=2,
        dropout=0.2,
        hidden_dropout=0.1,
        input_dropout=0.2,
        seed=seed,
    )
    backbone.build((None, None))
    encoder = None
    if descriptions is not None:
        is_bytes = descriptions.dtype.kind == "i"
        encoder = keras_drill.DescriptionLabelEncoder(
            descriptions[: text.num_known],
            byte_network() if is_bytes else vector_network(descriptions.shape[1]),
            embedding_dropout=dropout,
            seed=seed,
        )
    head = keras_drill.OutputLayer(text.num_known, backbone.embedding, label_encoder=encoder)
    return keras_drill.LanguageModel(backbone, head)


def byte_network() -> keras.Sequential:
    return keras.Sequential(
        [
            keras.Input((NUM_BYTES,), dtype="int32"),
            keras.layers.Embedding(257, 16),
            keras.layers.Conv1D(64, 4, padding="same", activation="relu"),
            keras.layers.GlobalMaxPooling1D(),
            keras.layers.Dense(WIDTH),
        ]
    )


def vector_network(width: int) -> keras.Sequential:
    return keras.Sequential(
        [
            keras.Input((width,)),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(WIDTH),
        ]
    )


def rows_of(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets `[rows, LENGTH]`; what does not fill a row is left out."""
    num_rows = (len(ids) - 1) // LENGTH
    ends = num_rows * LENGTH
    return ids[:ends].reshape(-1, LENGTH), ids[1 : ends + 1].reshape(-1, LENGTH)


def train(model, text: Text, folder: Path, epochs: int, rate: float) -> None:
    """Trains, or goes on; a finished model is only read."""
    file = folder / "model.weights.h5"
    if not file.exists():
        splits = {split: rows_of(text.as_read(ids)) for split, ids in text.splits.items()}
        steps = epochs * math.ceil(len(splits["train"][0]) / ROWS)
        decay = keras.optimizers.schedules.CosineDecay(rate, steps, alpha=0.02)
        model.compile(
            keras.optimizers.Adam(decay, clipnorm=1.0), metrics=[keras_drill.metrics.Perplexity()]
        )
        model.fit(
            *splits["train"],
            batch_size=ROWS,
            epochs=epochs,
            validation_data=splits["valid"],
            callbacks=[keras.callbacks.BackupAndRestore(folder / "backup")],
            verbose=2,
        )
        model.save_weights(file)
    model.load_weights(file)


def biases_by_count(text: Text, model, first_rank: int) -> np.ndarray:
    """Biases of the held-out words: what rarer words of such a count have."""
    logs = np.log(text.counts)
    biases = np.asarray(model.head.bias)
    rarer = np.arange(first_rank, text.num_known)
    slope, start = np.polyfit(logs[rarer], biases[rarer], 1)
    return (start + slope * logs[text.num_known :]).astype("float32")


def with_mean_embeddings(head, biases):
    """A tied head with more words, whose labels are the mean of all others'."""
    labels = np.asarray(head.encoded_labels())
    more = np.repeat(labels.mean(0, keepdims=True), len(biases), 0)
    new = keras_drill.OutputLayer(len(labels) + len(biases))
    new.build(head.hidden_shape)
    new.label_embeddings.assign(np.concatenate([labels, more]))
    new.bias.assign(np.concatenate([head.bias, biases]))
    return new


class Scored(NamedTuple):
    """Log-probabilities `[N]` of a text's targets, and of held-out ones given that they are."""

    log_probs: np.ndarray
    among_held_out: np.ndarray

    def figures(self, held_out: np.ndarray) -> dict[str, float]:
        return {
            "held-out": float(self.log_probs[held_out].mean()),
            "among held-out": float(self.among_held_out.mean()),
            "other": float(self.log_probs[~held_out].mean()),
            "perplexity": float(np.exp(-self.log_probs.mean())),
        }


def score(head, hidden: np.ndarray, targets: np.ndarray, text: Text) -> Scored:
    """Scores with a head that knows all words."""
    unknown, known = text.unknown_id, text.num_known
    share = text.counts[known:].sum() / text.counts[[unknown, *range(known, len(text.words))]].sum()
    biases = np.asarray(head.bias).copy()
    biases[unknown] += math.log(1 - share)
    head.bias.assign(biases)
    log_probs = in_parts(head.log_prob, hidden, targets)
    held_out = targets >= known

    def of_held_out(hidden, targets):
        found = np.asarray(head(hidden))[:, known:].astype("float64")
        found = found - np.logaddexp.reduce(found, -1, keepdims=True)
        return np.take_along_axis(found, targets[:, None] - known, -1)[:, 0]

    return Scored(log_probs, in_parts(of_held_out, hidden[held_out], targets[held_out]))


def in_unknown(model, hidden, targets, text: Text, among_held_out: np.ndarray) -> Scored:
    """Held-out words share what `<unk>` leaves them: `among_held_out` says how."""
    unknown, known = text.unknown_id, text.num_known
    log_probs = in_parts(model.head.log_prob, hidden, text.as_read(targets)).astype("float64")
    total = text.counts[known:].sum()
    all_unknown = total + text.counts[unknown]
    held_out = targets >= known
    log_probs[held_out] += math.log(total / all_unknown) + among_held_out
    log_probs[targets == unknown] += math.log(text.counts[unknown] / all_unknown)
    return Scored(log_probs, among_held_out)


def in_parts(function: Callable, hidden: np.ndarray, targets: np.ndarray) -> np.ndarray:
    parts = range(0, len(targets), 4096)
    return np.concatenate(
        [np.asarray(function(hidden[i : i + 4096], targets[i : i + 4096])) for i in parts]
    )


def evaluate(
    name: str, model, text: Text, descriptions: np.ndarray | None, first_rank: int
) -> dict[str, dict[str, float]]:
    """Figures of all that can be made of one trained model, by name."""
    inputs, targets = rows_of(text.splits["test"])
    hidden = model.backbone.predict(text.as_read(inputs), batch_size=ROWS, verbose=0)
    hidden, targets = hidden.reshape(-1, WIDTH), targets.reshape(-1)
    held_out = targets >= text.num_known
    biases = biases_by_count(text, model, first_rank)
    rows = {}
    if descriptions is None:
        counts = text.counts[text.num_known :]
        spread = np.log(counts / counts.sum())[targets[held_out] - text.num_known]
        rows["spread"] = in_unknown(model, hidden, targets, text, spread)
        head = with_mean_embeddings(model.head, biases)
        rows["mean embedding"] = score(head, hidden, targets, text)
    else:
        more = descriptions[text.num_known :]
        table = keras.layers.Embedding(len(text.words), WIDTH)
        head = model.head.with_words(more, bias=biases, embedding=table)
        found = rows[name] = score(head, hidden, targets, text)
        among = found.among_held_out
        rows[f"{name}, in <unk>"] = in_unknown(model, hidden, targets, text, among)
    alone = in_parts(model.head.log_prob, hidden, text.as_read(targets))
    figures = {row: scored.figures(held_out) for row, scored in rows.items()}
    for found in figures.values():
        found["test ppl with <unk>"] = float(np.exp(-alone.mean()))
        found["tokens"] = int(held_out.sum())
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path, help="a folder with a text's splits")
    parser.add_argument("--folder", type=Path, default=Path("build/unseen-words"))
    parser.add_argument("--models", nargs="+", choices=MODELS, help="all that can be made")
    parser.add_argument("--encoder", help="preset of keras-hub, or its folder")
    parser.add_argument("--definitions", type=Path, help="a file of words' definitions")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--rate", type=float, default=0.003, help="learning rate at first")
    parser.add_argument("--part", type=float, default=1.0, help="share of the training text")
    parser.add_argument("--held-out", type=float, default=0.05, help="share of the words")
    parser.add_argument("--first-rank", type=int, default=1000, help="of words to hold out from")
    args = parser.parse_args()
    needs = {name: missing_options(name, args) for name in MODELS}
    models = args.models or [name for name in MODELS if not needs[name]]
    for name in models:
        if needs[name]:
            parser.error(f"--models {name!r} needs {' and '.join(needs[name])}")
    encoder = TextEncoder.from_preset(args.encoder) if args.encoder else None
    definitions = read_definitions(args.definitions) if args.definitions else {}
    told = (args.epochs, args.rate, args.part, args.held_out, args.first_rank)
    options = "-".join(map(str, told))  # others train models of their own
    found: dict[str, list[dict]] = {}
    for seed in args.seeds:
        text = load(args.data, args.held_out, args.first_rank, args.part, seed)
        print(
            f"seed {seed}: {len(text.words):,} words, {len(text.words) - text.num_known} held out; "
            f"{len(text.splits['train']):,} tokens",
            flush=True,
        )
        for name in models:
            label = name.replace(", ", "-").replace(" ", "-")
            if is_embedded(name):
                label += f"-{encoder.fingerprint[:8]}"
            if "definitions" in name:
                label += f"-{zlib.crc32(args.definitions.read_bytes()):08x}"
            folder = args.folder / options / f"{label}-{seed}"
            folder.mkdir(parents=True, exist_ok=True)
            descriptions = describe_words(name, text, encoder, definitions)
            model = make_model(text, descriptions, MODELS[name], seed)
            train(model, text, folder, args.epochs, args.rate)
            for row, figures in evaluate(name, model, text, descriptions, args.first_rank).items():
                print(json.dumps({"seed": seed, "row": row, **figures}), flush=True)
                found.setdefault(row, []).append(figures)
    print(table(found))


def table(found: dict[str, list[dict]]) -> str:
    """Means over seeds, and in brackets the seeds."""
    columns = list(next(iter(found.values()))[0])
    lines = ["| |" + "|".join(columns) + "|", "|---" + "|--:" * len(columns) + "|"]
    for row, results in found.items():
        cells = []
        for column in columns:
            values = [figures[column] for figures in results]
            by_seed = " ".join(f"{value:.2f}" for value in values)
            cells.append(f"{statistics.mean(values):.2f} ({by_seed})")
        lines.append("| " + " | ".join([row, *cells]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
