"""What a `Translator` makes of searches: by hand, from the search's own results."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_drill.data import Vocabulary, WhitespaceTokenizer
from keras_drill.data.serialize_examples import serialize_examples
from keras_drill.decoding import (
    BannedWords,
    BeamSearch,
    LanguageModelStep,
    MinLength,
    TemperatureSampler,
    generate,
)
from keras_drill.export import Side, TextModel, Translator, export_translator
from keras_drill.export.answers import Answers
from keras_drill.export.translation_search import TokenRows, TranslationSearch
from keras_drill.layers import Attention
from keras_drill.models import RecurrentEncoderDecoder, Transformer, TransformerLanguageBackbone
from keras_drill.models.language_model import LanguageModel
from keras_drill.models.sequence_to_sequence import SequenceToSequence
from keras_drill.output_layer import OutputLayer

WORDS = ["<pad>", "<unk>", "<eos>", "<sos>", "|", *"abcdefghijklm"]
V, UNK, END, START = len(WORDS), 1, 2, 3
TEXTS = ["a b c", "d", "a b z c d e f", "m l | k j i h g"]
MAX_SOURCE, MAX_TOKENS = 23, 13


@pytest.fixture(scope="module")
def side():
    return Side(WhitespaceTokenizer(), Vocabulary(WORDS))


def filled(backbone):
    model = SequenceToSequence(backbone, OutputLayer(V))
    tokens = np.ones((1, 1), "int32")
    model({"source": tokens, "target": tokens})
    random = np.random.default_rng(17)
    for variable in model.trainable_variables:  # distributions far from uniform
        variable.assign(random.normal(scale=0.7, size=variable.shape))
    return model


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(3)
    return filled(RecurrentEncoderDecoder(V, 5, units=7, cell="gru", bidirectional=False))


def searched(model, side, search, texts=TEXTS, constraints=(), writes_unknown=False):
    """The beams of a search that knows nothing of a `Translator`."""
    ids, lengths = side.encode(texts, MAX_SOURCE)
    room = np.minimum((2 * lengths.numpy()) + 10, MAX_TOKENS) + 1
    tokens = np.zeros((len(texts), room.max()), "int32")
    tokens[:, 0] = START
    return search(
        LanguageModelStep(model),
        tokens,
        lengths=[1] * len(texts),
        inputs={"source": ids},
        max_lengths=room,
        end_token=END,
        forbidden_tokens=[0, START] if writes_unknown else [0, UNK, START],
        constraints=constraints,
    )


def made(model, side, search=None, **options):
    limits = {"max_source_tokens": MAX_SOURCE, "max_tokens": MAX_TOKENS, **options}
    return Translator(model, side, side, search, **limits)


def translated(model, side, search=None, texts=TEXTS, **options):
    module = made(model, side, search, **options)  # kept alive by its name: methods are not
    return module.translate(texts)


def texts_of(found):
    return [[text.decode() for text in row] for row in found["texts"].numpy()]


def test_answers_are_those_of_the_search(model, side):
    found = translated(model, side, BeamSearch(5, 1.0, num_results=3))
    beams = searched(model, side, BeamSearch(5, 1.0))
    texts = side.decode(beams.tokens).numpy()
    has_end = (beams.tokens.numpy() == END).any(axis=2)
    assert has_end.any() and not has_end.all()
    for row in range(len(TEXTS)):
        places = [k for k in range(5) if texts[row, k] not in texts[row, :k]][:3]
        assert found["texts"].numpy()[row].tolist() == texts[row, places].tolist()
        for name in ("scores", "log_probs"):
            expected = getattr(beams, name).numpy()[row, places]
            np.testing.assert_allclose(found[name][row], expected, rtol=1e-5)
        np.testing.assert_array_equal(found["is_truncated"][row], ~has_end[row, places])


@pytest.mark.slow
def test_groups_that_find_the_same_are_filled_up(model, side):
    search = BeamSearch(6, 1.0, num_results=4, num_groups=3, diversity=0.0)
    module = made(model, side, search)
    found = module.translate(TEXTS)
    twice, wide = (searched(model, side, BeamSearch(k, 1.0)) for k in (2, 12))
    for row, texts in enumerate(found["texts"].numpy().tolist()):
        assert len(set(texts)) == 4
        known = {}
        for beams in (twice, wide):
            decoded = side.decode(beams.tokens).numpy()[row]
            for text, score in zip(decoded, beams.scores.numpy()[row], strict=True):
                if len(known) < 4:
                    known.setdefault(text, score)
        expected = sorted(known.items(), key=lambda one: -one[1])
        assert texts == [text for text, _ in expected]
        np.testing.assert_allclose(found["scores"][row], [s for _, s in expected], rtol=1e-5)
    alone = module.translate(TEXTS[1:2])
    assert alone["texts"].numpy().tolist() == found["texts"].numpy()[1:2].tolist()


@pytest.mark.slow
def test_a_reversed_source_is_read_in_the_same_order_when_it_is_exported(side, tmp_path):
    options = {"units": 7, "cell": "gru", "bidirectional": False, "reverse_source": True}
    last = filled(RecurrentEncoderDecoder(V, 5, source_end_last=True, **options))
    forwards = filled(RecurrentEncoderDecoder(V, 5, **{**options, "reverse_source": False}))
    words = [text.split() for text in TEXTS]
    backwards = [" ".join(reversed(some)) for some in words]
    sides = [(side.tokenizer, side.vocabulary)] * 2
    limits = {"max_source_tokens": MAX_SOURCE, "max_tokens": MAX_TOKENS}
    folder = export_translator(last, tmp_path, *sides, search=BeamSearch(2, 1.0), **limits)
    found = tf.saved_model.load(str(folder)).signatures["translate"](texts=tf.constant(TEXTS))
    # The end symbol stays behind the words, so a model that reads forwards reads the same.
    expected = translated(forwards, side, BeamSearch(2, 1.0), backwards)
    assert found["texts"].numpy().tolist() == expected["texts"].numpy().tolist()
    np.testing.assert_allclose(found["log_probs"], expected["log_probs"], rtol=1e-5)


def test_answers_that_differ_are_chosen_in_order():
    scores = [[-1.0, -2.0, -3.0, -4.0, -0.5], [-1.0, -np.inf, -2.0, -np.inf, -3.0]]
    texts = [["b", "b", "a", "c", "d"], ["x", "", "x", "", "x"]]
    numbers = tf.reshape(tf.range(10), [2, 5])
    answers = Answers(
        tf.constant(texts), tf.constant(scores), tf.constant(scores), numbers, numbers > 6
    )
    found = answers.distinct(3)
    assert found.texts.numpy().tolist() == [[b"b", b"a", b"c"], [b"x", b"", b""]]
    assert found.scores.numpy().tolist() == [[-1, -3, -4], [-1, -np.inf, -np.inf]]
    assert found.lengths.numpy().tolist() == [[0, 2, 3], [5, 0, 0]]
    assert not found.is_truncated.numpy().any()


@pytest.mark.slow
@pytest.mark.parametrize("search", [BeamSearch(3), TemperatureSampler()])
def test_an_empty_text_has_one_empty_answer(model, side, search):
    module = made(model, side, search, num_samples=3)
    found = {name: value.numpy() for name, value in module.translate(["", "a", " "]).items()}
    none = [-np.inf] * (module.num_answers - 1)
    for row in (0, 2):
        assert not any(found["texts"][row]) and not found["lengths"][row].any()
        assert found["scores"][row].tolist() == found["log_probs"][row].tolist() == [0, *none]
        assert not found["is_truncated"][row].any()
    assert np.isfinite(found["scores"][1]).all()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [18, 14, 26, 28]),
        ({"max_ratio": 0.5}, [12, 11, 14, 14]),
        ({"max_ratio": None}, [97, 97, 97, 97]),
        ({"max_ratio": 0.5, "constraints": [MinLength(12)]}, [13, 13, 14, 14]),
        ({"max_tokens": 12, "constraints": [MinLength(12)]}, [12, 12, 12, 12]),
    ],
)
def test_how_long_answers_may_be(side, options, expected):
    options = {"max_tokens": 97, "max_ratio": 2.0, "constraints": (), **options}
    search = TranslationSearch(
        None,
        side.vocabulary,
        writes_unknown=False,
        max_source_tokens=MAX_SOURCE,
        seed=0,
        num_samples=1,
        **options,
    )
    source = TokenRows(*side.read(TEXTS, MAX_SOURCE))
    none = TokenRows(tf.zeros([4, 0], "int32"), tf.zeros([4], "int32"), None)
    assert search.room(source, none).numpy().tolist() == expected
    long = none._replace(lengths=tf.fill([4], 101))
    assert search.room(source, long).numpy().tolist() == [101] * 4


@pytest.mark.slow
def test_answers_that_never_end_are_truncated(model, side):
    never = {"max_ratio": 0.5, "constraints": [BannedWords([END])]}
    found = translated(model, side, BeamSearch(1), **never)
    assert found["lengths"].numpy()[:, 0].tolist() == [12, 11, 13, 13]
    assert found["is_truncated"].numpy().all()


@pytest.mark.slow
def test_answers_begin_with_their_prefixes(model, side):
    prefixes = ["b c", "", "new f", "a <eos> b"]
    module = made(model, side, BeamSearch(4, 1.0, num_results=2))
    found = module.complete(TEXTS, prefixes)
    for prefix, texts in zip(prefixes, texts_of(found), strict=True):
        assert all(text.startswith(prefix) for text in texts)
    ids, _ = side.encode(TEXTS)
    tokens = np.zeros((1, MAX_TOKENS + 1), "int32")
    tokens[0, :3] = [START, WORDS.index("b"), WORDS.index("c")]
    beams = BeamSearch(4, 1.0)(
        LanguageModelStep(model),
        tokens,
        lengths=[3],
        inputs={"source": ids[:1]},
        end_token=END,
        forbidden_tokens=[0, UNK, START],
    )
    assert texts_of(found)[0][0] == side.decode(beams.tokens[0, 0]).numpy().decode()
    np.testing.assert_allclose(found["scores"][0], beams.scores[0, :2], rtol=1e-5)
    plain = searched(model, side, BeamSearch(4, 1.0))
    assert texts_of(found)[1][0] == side.decode(plain.tokens[1, 0]).numpy().decode()
    long = module.complete(TEXTS[:1], [" ".join("abcdefghijklm")])
    assert texts_of(long) == [[" ".join("abcdefghijklm"), ""]]
    assert long["is_truncated"].numpy().tolist() == [[True, False]]


@pytest.mark.slow
def test_unknown_words_are_copied_from_the_source(model, side):
    likes_unknown = filled(RecurrentEncoderDecoder(V, 5, units=7, attention=Attention()))
    likes_unknown.head.bias.assign(np.where(np.arange(V) == UNK, 4.0, likes_unknown.head.bias))
    texts = ["Haus a Berg", "b Fluss", "m l Tal k"]
    search = BeamSearch(3, 1.0, num_results=2)
    found = translated(likes_unknown, side, search, replace_unknown=True, texts=texts)
    beams = searched(
        likes_unknown, side, BeamSearch(3, 1.0, return_attention=True), texts, writes_unknown=True
    )
    copied = 0
    for row, text in enumerate(texts):
        words, expected = text.split(), []
        for k in range(3):
            length = int(beams.lengths[row, k])
            line = []
            for t in range(1, length):
                token = int(beams.tokens[row, k, t])
                most = int(np.argmax(beams.attention[row, k, t, : len(words)]))
                line += [] if token == END else [words[most] if token == UNK else WORDS[token]]
                copied += token == UNK
            if " ".join(line) not in expected:
                expected.append(" ".join(line))
        shown = [" ".join(t.split()) for t in texts_of(found)[row]]
        assert shown[: len(expected)] == expected[:2]
    assert copied > 5


@pytest.mark.slow
def test_drawn_answers(model, side):
    module = made(model, side, TemperatureSampler(), seed=5, num_samples=3)
    rows = np.arange(11, 15)
    found = module.answer(TEXTS, rows=rows)
    again = module.answer(TEXTS[::-1], rows=rows[::-1])
    assert texts_of(found) == texts_of(again)[::-1]
    assert texts_of(module.answer(TEXTS[:1], rows=[0])) == texts_of(module.translate(TEXTS[:1]))
    same = texts_of(module.answer(["a b c"] * 7, rows=np.arange(7)))
    assert len({text for row in same for text in row}) > 9
    first = made(model, side, TemperatureSampler(), seed=5).answer(TEXTS, rows=rows)
    assert texts_of(first) == [row[:1] for row in texts_of(found)]
    # What ended by itself has the log-probability that `score` tells.
    for row, source in enumerate(TEXTS):
        for k in range(3):
            if not found["is_truncated"][row, k]:
                told = module.score([source], [texts_of(found)[row][k]])["total_log_probs"]
                np.testing.assert_allclose(found["log_probs"][row, k], told[0], rtol=1e-4)
    forced = module.answer(TEXTS, ["c d"] * 4, rows)
    assert all(text.startswith("c d") for row in texts_of(forced) for text in row)


@pytest.mark.slow
def test_of_a_long_context_the_last_turn_is_read(model, side):
    module = made(
        model, side, BeamSearch(4), max_source_tokens=9, truncation_side="left", turn_separator="|"
    )
    old = " a b c" * 5
    contexts = [f"{old} | e f | g h i", f"{old} | e f | m l k", f"{old} {old}"]
    short = ["e f | g h i", "e f | m l k", "b c a b c a b c"]
    found, expected = module.translate(contexts), module.translate(short)
    assert texts_of(found) == texts_of(expected) and texts_of(found)[0] != texts_of(found)[1]
    np.testing.assert_allclose(found["scores"], expected["scores"], rtol=1e-6)
    targets = ["a b", "c", "d"]
    scores, shorter = (module.score(some, targets) for some in (contexts, short))
    np.testing.assert_allclose(scores["log_probs"], shorter["log_probs"], rtol=1e-6)
    pairs = {"target": [t.encode() for t in targets]}
    examples = [
        module.examples(serialize_examples({"source": [t.encode() for t in some], **pairs}))
        for some in (contexts, short)
    ]
    assert examples[0]["answers"].numpy().tolist() == examples[1]["answers"].numpy().tolist()
    np.testing.assert_allclose(examples[0]["log_probs"], scores["log_probs"], rtol=1e-6)


@pytest.mark.slow
def test_models_say_what_they_cannot_do(model, side):
    attends = filled(RecurrentEncoderDecoder(V, 5, units=7, attention=Attention()))
    for wrong, options, message in [
        (model, {"replace_unknown": True}, "needs a model that attends to its source"),
        (attends, {"replace_unknown": True, "search": TemperatureSampler()}, "needs a beam search"),
        (model, {"truncation_side": "top"}, "`truncation_side` must be one of"),
        (model, {"max_ratio": 0.0}, "`max_ratio` must be positive"),
        (model, {"num_samples": 0}, "`num_samples` must be positive"),
    ]:
        with pytest.raises(ValueError, match=message) as error:
            made(wrong, side, **options)
        assert "Received:" in str(error.value)
    options = {"num_layers": 1, "num_heads": 2, "feed_forward_dim": 5}
    learned = Transformer(V, 6, positions="learned", max_length=19, **options)
    learned = SequenceToSequence(learned, OutputLayer(V))
    with pytest.raises(ValueError, match="`max_source_tokens` must be at most 19, the model's"):
        made(learned, side)
    with pytest.raises(ValueError, match="`max_tokens` must be at most 19, the model's"):
        made(learned, side, max_source_tokens=19, max_tokens=20)
    long = ["a b c d e f g h i j " * 3]
    found = translated(
        learned, side, BeamSearch(2), max_source_tokens=19, max_tokens=19, texts=long
    )
    assert np.isfinite(found["scores"]).all()


@pytest.mark.slow
def test_scores_do_not_depend_on_a_longer_target(side):
    backbone = Transformer(
        V, 6, num_layers=1, num_heads=2, feed_forward_dim=5, positions="learned", max_length=5
    )
    translator = Translator(filled(backbone), side, side, max_source_tokens=4, max_tokens=4)
    alone = translator.score(["a b"], ["c a"])
    both = translator.score(["a b", "a"], ["c a", "a b c a b c"])
    np.testing.assert_allclose(both["log_probs"][0, :3], alone["log_probs"][0], rtol=1e-5)
    np.testing.assert_allclose(both["total_log_probs"][0], alone["total_log_probs"][0], rtol=1e-5)
    assert np.isnan(both["log_probs"][1]).tolist() == [False] * 5 + [True] * 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["learned positions", "a fixed length"])
def test_of_long_prompts_the_end_is_read(kind):
    if kind == "a fixed length":
        tokens = keras.Input((11,), dtype="int32")
        x = keras.layers.Embedding(V, 5)(tokens)
        backbone = keras.Model(tokens, keras.layers.GRU(7, return_sequences=True)(x))
    else:
        options = {"num_heads": 2, "feed_forward_dim": 5, "positions": "learned", "max_length": 11}
        backbone = TransformerLanguageBackbone(V, 6, 1, **options)
    model = LanguageModel(backbone, OutputLayer(V))
    model(np.zeros((1, 11), "int32"))
    module = TextModel(model, WhitespaceTokenizer(), Vocabulary(WORDS), max_new_tokens=4, k=3)
    prompts, ends = ["a b c d e f g h i j k l", "a"], ["g h i j k l", "a"]
    long, short = module.continue_text(prompts), module.continue_text(ends)
    assert np.isfinite(long["log_probs"]).all()
    assert long["words"].numpy().tolist() == short["words"].numpy().tolist()
    assert long["texts"][0].numpy().startswith(prompts[0].encode())
    top = [module.top_k([text])["log_probs"] for text in (prompts[0], "c d e f g h i j k l")]
    np.testing.assert_allclose(top[0], top[1], rtol=1e-5)
    with pytest.raises(ValueError, match="`max_new_tokens` must be less than 11"):
        TextModel(model, WhitespaceTokenizer(), Vocabulary(WORDS), max_new_tokens=11)
    with pytest.raises(ValueError, match="`max_length` must be at most 11"):
        generate(model, [[4, 5]], 12)
