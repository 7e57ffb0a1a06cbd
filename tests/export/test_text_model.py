import numpy as np
import pytest
import tensorflow as tf

from keras_drill.data import Vocabulary, WordTokenizer
from keras_drill.decoding import GreedySampler, MinPSampler, TopKSampler, generate
from keras_drill.export import TextModel
from keras_drill.export.rowwise_sampler import RowwiseSampler
from tests.decoding.tiny_models import awd_lstm_with_drill
from tests.export.conftest import SETTINGS

TEXTS = [
    "The cat sat on a mat.",
    "",
    "an unknown zebra, é!\nThe dog ran (here)\n",
    "it was there and it was here when the dog ran or the cat sat on a mat . " * 13,
]


def words(answer, row):
    length = int(answer["lengths"][row])
    assert not any(answer["words"][row, length:].numpy())
    return [word.decode() for word in answer["words"][row, :length].numpy()]


def ids_of(vocabulary, text):
    tokenizer = WordTokenizer()
    ids = [vocabulary.end_id]
    for line in text.split("\n"):
        ids += vocabulary.ids(tokenizer.tokenize(line)).numpy().tolist() + [vocabulary.end_id]
    return ids[:-1]


@pytest.mark.slow
def test_score_is_the_models_log_probability(model, vocabulary, text_model):
    answer = text_model.score(TEXTS)
    for row, text in enumerate(TEXTS):
        ids = ids_of(vocabulary, text.removesuffix("\n")) + [vocabulary.end_id]
        log_probs = model(np.array([ids[:-1]])).numpy()[0]
        expected = log_probs[np.arange(len(ids) - 1), ids[1:]].astype("float64")
        length = int(answer["lengths"][row])
        assert words(answer, row) == [vocabulary.tokens[i] for i in ids[1:]]
        np.testing.assert_allclose(answer["log_probs"][row, :length], expected, rtol=2e-5)
        assert not answer["log_probs"][row, length:].numpy().any()
        np.testing.assert_allclose(answer["total_log_probs"][row], expected.sum(), rtol=2e-5)
        np.testing.assert_allclose(answer["perplexities"][row], np.exp(-expected.mean()), rtol=2e-5)
    assert " ".join(words(answer, 2)) == (
        "<unk> <unk> <unk> , é <unk> <eos> the dog ran ( here ) <eos>"
    )


@pytest.mark.slow
def test_score_in_tiles(model, vocabulary, text_model, monkeypatch):
    monkeypatch.setattr("keras_drill.export.tiles._TILE_BYTES", 4 * 23 * 7)
    tiled = TextModel(model, WordTokenizer(), vocabulary)
    np.testing.assert_allclose(
        tiled.score(TEXTS)["log_probs"], text_model.score(TEXTS)["log_probs"], rtol=1e-5
    )


@pytest.mark.slow
def test_top_k_is_the_best_of_the_next_distribution(model, vocabulary, text_model):
    answer = text_model.top_k(TEXTS)
    for row, text in enumerate(TEXTS):
        log_probs = model(np.array([ids_of(vocabulary, text)])).numpy()[0, -1]
        best = np.argsort(-log_probs)[:3]
        assert [word.decode() for word in answer["words"][row].numpy()] == [
            vocabulary.tokens[i] for i in best
        ]
        np.testing.assert_allclose(answer["log_probs"][row], log_probs[best], rtol=2e-5)


# Some texts end with an empty line: the end token, which is continued.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*end with the end token:UserWarning")
@pytest.mark.parametrize("sampler", [GreedySampler(), TopKSampler(5)])
def test_continue_is_generate(model, vocabulary, sampler):
    text_model = TextModel(
        model, WordTokenizer(), vocabulary, sampler=sampler, seed=2, max_new_tokens=7
    )
    answer = text_model.continue_text(TEXTS)
    for row, text in enumerate(TEXTS):
        if row and not isinstance(sampler, GreedySampler):
            break  # further rows draw from streams of their own
        prompt = ids_of(vocabulary, text)
        expected = generate(
            model,
            [prompt],
            len(prompt) + 7,
            sampler=sampler,
            end_token=vocabulary.end_id,
            forbidden_tokens=[vocabulary.unknown_id],
            seed=2,
        )
        new = slice(len(prompt), int(expected.lengths[0]))
        assert words(answer, row) == [vocabulary.tokens[i] for i in expected.tokens[0, new]]
        length = int(answer["lengths"][row])
        np.testing.assert_allclose(
            answer["log_probs"][row, :length], expected.log_probs[0, new], rtol=1e-4
        )


def test_texts_read_well(text_model):
    answer = text_model.continue_text(TEXTS)
    texts = [text.decode() for text in answer["texts"].numpy()]
    assert texts[0].startswith("the cat sat on a mat.")
    assert texts[2].startswith("an unknown zebra, é!\nthe dog ran (here)\n")
    assert not any("<eos>" in text for text in texts)
    assert texts[1] == answer["continuations"][1].numpy().decode()


@pytest.fixture(scope="module")
def ending_model():
    """Thinks that lines are short."""
    model = awd_lstm_with_drill()
    bias = model.head.bias.numpy()
    bias[1] += 4  # <eos>
    model.head.bias.assign(bias)
    return model


@pytest.mark.slow
def test_a_continuation_ends_with_the_end_token(ending_model, vocabulary):
    text_model = TextModel(
        ending_model, WordTokenizer(), vocabulary, sampler=TopKSampler(9), max_new_tokens=13
    )
    answer = text_model.continue_samples(TEXTS, 5)
    lengths = answer["lengths"].numpy()
    for row, length in enumerate(lengths):
        added = words(answer, row)
        assert "<eos>" not in added[:-1] and (length == 13 or added[-1] == "<eos>")
        prompt = text_model.codec.words_of_prompts(TEXTS[row // 5 : row // 5 + 1])
        readable = [[word for word in added if word != "<eos>"]]
        whole = tf.concat([prompt, tf.ragged.constant(readable, dtype=tf.string)], axis=1)
        assert answer["texts"][row] == text_model.codec.join(whole)[0]
    assert 1 in lengths and 13 in lengths and len(set(lengths)) > 5


@pytest.mark.slow
def test_samples_are_independent_of_how_many_there_are(text_model):
    five = text_model.continue_samples(TEXTS, 5)["texts"].numpy().reshape(4, 5)
    two = text_model.continue_samples(TEXTS, 2)["texts"].numpy().reshape(4, 2)
    np.testing.assert_array_equal(five[:, :2], two)
    assert five[0, 0] == text_model.continue_text(TEXTS)["texts"][0]
    assert all(len(set(texts)) == 5 for texts in five)
    parts = [text_model.continue_samples(TEXTS[a:b], 2, a)["texts"] for a, b in ((0, 3), (3, 4))]
    np.testing.assert_array_equal(np.concatenate(parts), two.reshape(-1))


@pytest.mark.slow
def test_stop_strings(model, vocabulary, text_model):
    stops = (") there", "don't", ",)")
    stopping = TextModel(model, WordTokenizer(), vocabulary, stop_strings=stops, **SETTINGS)
    free, answer = (m.continue_samples(TEXTS, 7) for m in (text_model, stopping))
    stopped = 0
    for row in range(28):
        text = free["continuations"][row].numpy().decode()
        first = min((text.find(stop) for stop in stops if stop in text), default=None)
        assert answer["continuations"][row].numpy().decode() == text[:first]
        whole = free["texts"][row].numpy().decode()
        removed = len(text) - len(text[:first])
        assert answer["texts"][row].numpy().decode() == whole[: len(whole) - removed]
        # No word more than it takes to see the string.
        added = words(answer, row)
        assert added == words(free, row)[: len(added)]
        readable = [[[word for word in part if word != "<eos>"]] for part in (added[:-1], added)]
        before, after = (
            text_model.codec.join(tf.RaggedTensor.from_tensor(tf.constant(part, tf.string)))
            for part in readable
        )
        assert not any(stop in before[0].numpy().decode() for stop in stops)
        if first is not None:
            stopped += 1
            assert any(stop in after[0].numpy().decode() for stop in stops)
    assert 3 < stopped < 28


def sample(text_model, prompts, **settings):
    count = len(prompts)
    defaults = {"max_new_tokens": 11, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    values = {**defaults, "seed": 0, **settings}
    return text_model.sample(
        tf.constant(prompts, tf.string),
        **{
            name: tf.constant(np.broadcast_to(value, count), dtype)
            for (name, value), dtype in zip(
                values.items(),
                ["int32", "float32", "int32", "float32", "float32", "int64"],
                strict=True,
            )
        },
    )


@pytest.mark.slow
def test_a_sample_depends_on_its_own_settings_alone(text_model):
    settings = {
        "max_new_tokens": [11, 3, 7, 5],
        "temperature": [1.0, 0.7, 1.3, 2.0],
        "top_k": [0, 5, 2, 23],
        "top_p": [0.9, 1.0, 0.5, 0.2],
        "min_p": [0.0, 0.1, 0.01, 0.5],
        "seed": [1, 2, 3, -4],
    }
    together = sample(text_model, TEXTS, **settings)
    for row, text in enumerate(TEXTS):
        alone = sample(text_model, [text], **{name: v[row] for name, v in settings.items()})
        assert words(alone, 0) == words(together, row)
        assert len(words(alone, 0)) <= settings["max_new_tokens"][row]


@pytest.mark.slow
def test_sample_settings(model, vocabulary, text_model):
    greedy_model = TextModel(model, WordTokenizer(), vocabulary, max_new_tokens=11)
    greedy = greedy_model.continue_text(TEXTS)
    for settings in (
        {"temperature": 0.0},
        {"top_k": 1},
        {"top_p": 0.0},
        {"min_p": 1.0},
        {"min_p": 7.0},
        {"temperature": np.nan},
    ):
        answer = sample(text_model, TEXTS, seed=[1, 2, 3, 4], **settings)
        assert [words(answer, row) for row in range(4)] == [words(greedy, row) for row in range(4)]
    many = sample(text_model, TEXTS, max_new_tokens=10**9)
    assert max(many["lengths"].numpy()) <= 11
    none = sample(text_model, TEXTS, max_new_tokens=[0, -3, 0, 0])
    assert none["lengths"].numpy().tolist() == [0] * 4
    top_2 = text_model.top_k(TEXTS)["words"].numpy()[:, :2]
    for seed in range(29):
        answer = sample(text_model, TEXTS, top_k=2, max_new_tokens=1, seed=seed)
        for row in range(4):
            # The unknown token, if it was among the two, is forbidden and the third moves up.
            if b"<unk>" not in top_2[row]:
                assert words(answer, row)[0].encode() in top_2[row]


@pytest.mark.parametrize(("p", "kept"), [(0.5, 1), (0.75, 2), (0.76, 3), (0.875, 3), (1.0, 5)])
def test_top_p_keeps_the_fewest_words_that_reach_p(p, kept):
    """Sums of powers of two are exact: a nucleus that reaches p exactly takes no more words."""
    log_probs = tf.math.log([[0.5, 0.25, 0.125, 0.0625, 0.0625]])
    sampler = RowwiseSampler(
        tf.constant([1.0]), tf.constant([0]), tf.constant([p]), tf.constant([0.0])
    )
    assert sampler.choose(log_probs, tf.constant([1 - 2.0**-24])).numpy().tolist() == [kept - 1]


@pytest.mark.parametrize(
    ("min_p", "kept"), [(2.0, 1), (0.5, 2), (0.26, 2), (0.25, 3), (0.0, 5), (-1.0, 5), (np.nan, 5)]
)
def test_min_p_keeps_the_words_that_are_so_probable(min_p, kept):
    log_probs = tf.math.log([[0.5, 0.25, 0.125, 0.0625, 0.0625]])
    sampler = RowwiseSampler(
        tf.constant([1.0]), tf.constant([0]), tf.constant([1.0]), tf.constant([min_p])
    )
    assert sampler.choose(log_probs, tf.constant([1 - 2.0**-24])).numpy().tolist() == [kept - 1]
    if 0 < min_p <= 1:
        chosen = MinPSampler(min_p).choose(log_probs, tf.constant([1 - 2.0**-24]))
        assert chosen.numpy().tolist() == [kept - 1]


@pytest.mark.slow
def test_empty_batch(text_model):
    empty = tf.constant([], tf.string)
    for answer in (
        text_model.continue_text(empty),
        text_model.score(empty),
        text_model.top_k(empty),
        sample(text_model, []),
    ):
        assert all(value.shape[0] == 0 for value in answer.values())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 24}, "`k` must be from 1 to 23"),
        ({"stop_strings": ("a", "")}, "`stop_strings` must be a tuple of strings"),
        ({"stop_strings": "end"}, "`stop_strings` must be a tuple of strings"),
        ({"max_new_tokens": 0}, "`max_new_tokens` must be positive"),
        ({"vocabulary": Vocabulary(["<unk>", "<eos>"])}, "`vocabulary` must have the model's 23"),
    ],
)
def test_errors_say_what_was_expected(model, vocabulary, settings, message):
    with pytest.raises(ValueError, match=message) as error:
        TextModel(model, WordTokenizer(), **{"vocabulary": vocabulary, **settings})
    assert "Received:" in str(error.value)
