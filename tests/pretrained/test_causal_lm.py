"""Language models made of keras-hub's: the same function, and the same training."""

import keras
import keras_hub
import numpy as np
import pytest
from keras import ops

from keras_drill import Distiller, LanguageModel
from keras_drill.decoding import BeamSearch, GreedySampler, LanguageModelStep, generate
from keras_drill.metrics import Perplexity
from tests.pretrained.families import FAMILIES, T, V, batch, causal_lm

SLOW = pytest.mark.slow


def numpy(x):
    return np.asarray(ops.convert_to_numpy(ops.cast(x, "float32")), "float64")


def log_softmax(logits):
    logits = numpy(logits)
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def weights_of(lm):
    return [numpy(w) for w in lm.backbone.weights]


@SLOW
def test_distillation():
    """A teacher and a student of different families, with soft caps and untied embeddings."""
    inputs, targets, weights = batch()
    teacher, student = (LanguageModel.from_causal_lm(causal_lm(x)) for x in ("llama3", "gemma2"))
    teacher.trainable = False
    distiller = Distiller(teacher, student, cross_entropy_weight=0.25)
    log_p, log_q = log_softmax(teacher(inputs)), log_softmax(student(inputs))
    losses = 0.75 * (np.exp(log_p) * (log_p - log_q)).sum(-1)
    losses -= 0.25 * np.take_along_axis(log_q, targets[..., None], -1)[..., 0]
    loss = distiller.compute_loss(inputs, targets, sample_weight=weights, training=False)
    np.testing.assert_allclose(numpy(loss), (weights * losses).mean(), rtol=1e-4)
    before = weights_of(teacher)
    distiller.compile(keras.optimizers.Adam(0.01), run_eagerly=True)
    history = distiller.fit(inputs, targets, sample_weight=weights, epochs=3, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    np.testing.assert_equal(weights_of(teacher), before)


QUICK = ("gpt2", "llama3", "llama3 tied", "gemma2", "gemma3", "qwen3", "phi3")


@pytest.mark.parametrize(
    "name", [x if x in QUICK else pytest.param(x, marks=SLOW) for x in FAMILIES]
)
def test_probabilities_are_those_of_the_logits(name):
    lm = causal_lm(name)
    inputs, targets, weights = batch()
    model = LanguageModel.from_causal_lm(lm)
    expected = log_softmax(lm(inputs))
    assert expected.std() > 0.3
    np.testing.assert_allclose(numpy(model(inputs)), expected, atol=2e-5)
    assert {id(w) for w in model.trainable_weights} == {id(w) for w in lm.trainable_weights}

    of_targets = np.take_along_axis(expected, targets[..., None], -1)[..., 0]
    loss = model.compute_loss(inputs, targets, sample_weight=weights, training=False)
    np.testing.assert_allclose(numpy(loss), -(weights * of_targets).mean(), rtol=1e-5)


@pytest.mark.parametrize(
    "name", ["gemma2", *(pytest.param(x, marks=SLOW) for x in ("gpt2", "llama3"))]
)
def test_training_is_that_of_keras_hub(name):
    inputs, targets, weights = batch()
    trained = []
    for is_ours in (True, False):
        lm = causal_lm(name)
        model = LanguageModel.from_causal_lm(lm) if is_ours else lm
        model.compile(
            keras.optimizers.SGD(0.5, clipnorm=1.0), weighted_metrics=[], run_eagerly=True
        )
        for _ in range(2):
            model.train_on_batch(inputs, targets, weights)
        trained.append(weights_of(lm))
    before = weights_of(causal_lm(name))
    moved = [abs(a - b).max() for a, b in zip(trained[1], before, strict=True)]
    assert max(moved) > 0.01
    for ours, theirs in zip(*trained, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def tokenizer():
    vocabulary = ["<|endoftext|>", "a", "Ġquick", "Ġfox", "Ġjumps", "Ġover", "Ġlazy", "Ġdog"]
    letters = sorted({c for word in vocabulary[1:] for c in word} - {"a"})
    vocabulary = {word: i for i, word in enumerate(vocabulary + letters)}
    merges = []
    for word in ("Ġquick", "Ġfox", "Ġjumps", "Ġover", "Ġlazy", "Ġdog"):
        parts = word[0]
        for letter in word[1:]:
            merges.append(f"{parts} {letter}")
            parts += letter
            vocabulary.setdefault(parts, len(vocabulary))
    return keras_hub.models.GPT2Tokenizer(vocabulary=vocabulary, merges=merges)


def reader():
    return keras_hub.models.GPT2CausalLMPreprocessor(tokenizer(), sequence_length=T)


TEXTS = ["a quick fox jumps", "a lazy dog", "a dog jumps over a fox", "a fox", "a quick dog"]


@pytest.mark.parametrize("name", ["gpt2", "gemma3"])
def test_greedy_decoding_takes_the_most_probable_words(name):
    """Each next word is the one with the largest logit of the original, given what is written."""
    lm = causal_lm(name)
    prompts = [[5, 7], [11, 13, 17]]
    generation = generate(LanguageModel.from_causal_lm(lm), prompts, max_length=T, end_token=None)
    for prompt, result in zip(prompts, ops.convert_to_numpy(generation.tokens), strict=True):
        expected = list(prompt)
        while len(expected) < T:
            ids = np.array([expected])
            logits = lm({"token_ids": ids, "padding_mask": np.ones_like(ids)})
            expected.append(int(np.argmax(numpy(logits)[0, -1])))
        assert result.tolist() == expected


def most_probable(lm, prompt, width):
    """Beams `[(log-probability, words)]` of the original model, which reads all words again."""
    beams = [(0.0, prompt)]
    while len(beams[0][1]) < T:
        ids = np.array([words for _, words in beams])
        log_probs = log_softmax(lm({"token_ids": ids, "padding_mask": np.ones_like(ids)}))[:, -1]
        longer = [
            (total + log_probs[row, word], [*words, word])
            for row, (total, words) in enumerate(beams)
            for word in range(V)
        ]
        beams = sorted(longer, key=lambda beam: -beam[0])[:width]
    return beams


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="compiles with tf.function")
@pytest.mark.parametrize("name", ["gpt2", "gemma3"])
def test_beams_eagerly_and_compiled(name):
    import tensorflow as tf

    lm = causal_lm(name)
    step, search = LanguageModelStep(LanguageModel.from_causal_lm(lm)), BeamSearch(3)
    prompts, lengths = np.zeros((2, T), "int32"), np.array([2, 3], "int32")
    prompts[0, :2], prompts[1, :3] = [5, 7], [11, 13, 17]
    compiled = tf.function(lambda x, n: search(step, x, n, end_token=None), jit_compile=True)
    for beams in (search(step, prompts, lengths, end_token=None), compiled(prompts, lengths)):
        for row, length in enumerate(lengths):
            expected = most_probable(lm, prompts[row, :length].tolist(), 3)
            assert beams.tokens[row].numpy().tolist() == [words for _, words in expected]
            np.testing.assert_allclose(beams.log_probs[row], [x for x, _ in expected], rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("search", [GreedySampler(), BeamSearch(3)])
def test_half_precision_generates(search, dtype):
    lm = causal_lm("llama3", dtype=dtype)
    prompts = [[5, 7], [11, 13]]
    model = LanguageModel.from_causal_lm(lm)
    found = generate(model, prompts, max_length=T, sampler=search, end_token=None)
    ids = np.reshape(ops.convert_to_numpy(found.tokens), (-1, T))
    log_probs = log_softmax(lm({"token_ids": ids, "padding_mask": np.ones_like(ids)}))
    expected = np.take_along_axis(log_probs[:, 1:-1], ids[:, 2:, None], axis=2)[..., 0].sum(axis=1)
    totals = numpy(found.log_probs)
    totals = totals.sum(axis=1) if isinstance(search, GreedySampler) else totals.reshape(-1)
    np.testing.assert_allclose(totals, expected, atol=0.3)


def test_texts_are_no_longer_than_the_positions_of_the_backbone():
    model = LanguageModel.from_causal_lm(causal_lm("gpt2"))
    with pytest.raises(ValueError, match=r"must be at most 11, .* Received: max_length=12"):
        generate(model, [[5]], max_length=12)


@pytest.mark.slow
def test_strings_train_it_and_the_original_generates():
    lm, theirs = causal_lm("gpt2", reader()), causal_lm("gpt2", reader())
    theirs.compile(keras.optimizers.SGD(0.5), weighted_metrics=[])
    theirs.fit(TEXTS, batch_size=2, epochs=2, verbose=0)

    model = LanguageModel.from_causal_lm(lm)
    model.compile(keras.optimizers.SGD(0.5), metrics=[Perplexity(), "accuracy"])
    before = model.evaluate(TEXTS, batch_size=3, return_dict=True, verbose=0)
    history = model.fit(
        TEXTS,
        batch_size=2,
        epochs=2,
        shuffle=False,
        validation_data=(TEXTS,),
        callbacks=[keras.callbacks.EarlyStopping("val_loss")],
        verbose=0,
    ).history
    for a, b in zip(weights_of(lm), weights_of(theirs), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    after = model.evaluate(TEXTS, batch_size=3, return_dict=True, verbose=0)
    assert after["loss"] < before["loss"]
    assert history["val_loss"][-1] == pytest.approx(after["loss"], rel=1e-5)
    assert np.exp(after["loss"]) == pytest.approx(after["perplexity"], rel=1e-5)
    assert model.predict(TEXTS[:2], verbose=0).shape == (2, T, V)

    for one in (lm, theirs):
        one.compile(sampler="greedy", run_eagerly=True)
    assert lm.generate("a quick", max_length=T) == theirs.generate("a quick", max_length=T)


@pytest.mark.slow
def test_every_way_to_hand_over_rows():
    model = LanguageModel.from_causal_lm(causal_lm("gpt2", reader()))
    model.compile("sgd")
    expected = model.evaluate(TEXTS, verbose=0)
    assert model.evaluate(np.array(TEXTS), verbose=0) == pytest.approx(expected)
    assert model.test_on_batch(TEXTS) == pytest.approx(expected)
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2)
        assert model.evaluate(dataset, verbose=0) == pytest.approx(expected, rel=1e-5)
        with pytest.raises(ValueError, match=r"`batch_size` must be None.*Received"):
            model.evaluate(dataset, batch_size=2)
        with pytest.raises(ValueError, match=r"`validation_split` must be 0.*Received"):
            model.fit(dataset, validation_split=0.5)
    log_probs = model.predict(TEXTS[:2], verbose=0)
    np.testing.assert_allclose(model.predict_on_batch(TEXTS[:2]), log_probs, atol=1e-5)
    x, y, w = model.preprocessor(TEXTS)
    model.preprocessor = None
    assert model.evaluate(x, y, sample_weight=w, verbose=0) == pytest.approx(expected)


@pytest.mark.slow
def test_held_out_rows_and_shuffling():
    seen = []

    def read(x, y=None, sample_weight=None):
        seen.append([int(row[0]) for row in x])
        inputs, targets, weights = batch(len(x))
        return inputs, targets, weights

    lm = causal_lm("gpt2")
    model = LanguageModel.from_causal_lm(lm, preprocessor=read)
    model.compile("sgd", run_eagerly=True)
    rows = np.arange(10)[:, None]
    model.fit(rows, batch_size=4, epochs=2, validation_split=0.4, verbose=0, shuffle=False)
    assert {tuple(rows) for rows in seen} == {(0, 1, 2, 3), (4, 5), (6, 7, 8, 9)}
    seen.clear()
    model.fit(rows, batch_size=10, epochs=2, verbose=0)
    assert any(order != sorted(order) for order in seen)
    assert all(sorted(order) == list(range(10)) for order in seen)
    for wrong in ("a text", (row for row in rows)):
        with pytest.raises(ValueError, match=r"`x` must be a list, an array.*Received"):
            model.fit(wrong, verbose=0)


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_lora_trains_nothing_else(jit_compile):
    lm = causal_lm("gemma3")
    lm.backbone.enable_lora(3)
    model = LanguageModel.from_causal_lm(lm)
    frozen = [(w, numpy(w)) for w in model.non_trainable_weights]
    lora = [(w, numpy(w)) for w in model.trainable_weights]
    assert lora and all("lora" in w.name for w, _ in lora)
    model.compile(keras.optimizers.Adam(0.01), jit_compile=jit_compile)
    inputs, targets, weights = batch()
    losses = [model.train_on_batch(inputs, targets, weights) for _ in range(3)]
    assert losses[-1] < losses[0]
    assert all((numpy(w) == before).all() for w, before in frozen)
    assert any((numpy(w) != before).any() for w, before in lora)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "llama3"])
def test_int8_backbones_that_are_frozen(name):
    inputs, targets, weights = batch()
    lm = causal_lm(name)
    lm.backbone.enable_lora(2)
    lm.quantize("int8")
    model = LanguageModel.from_causal_lm(lm)
    # Their own product rounds hidden states to int8 too.
    np.testing.assert_allclose(numpy(model(inputs)), log_softmax(lm(inputs)), atol=0.1)
    model.compile(keras.optimizers.Adam(0.02), run_eagerly=True)
    losses = [model.train_on_batch(inputs, targets, weights) for _ in range(3)]
    assert losses[-1] < losses[0]


@pytest.mark.slow
def test_quantised_layers_do_not_train():
    lm = causal_lm("gpt2")
    lm.quantize("int8")
    with pytest.raises(
        ValueError, match=r"must not have trainable quantised layers.*Received: \d+"
    ):
        LanguageModel.from_causal_lm(lm)
    lm.backbone.trainable = False
    model = LanguageModel.from_causal_lm(lm)
    model.compile()
    inputs, targets, weights = batch()
    assert np.isfinite(model.test_on_batch(inputs, targets, weights))


@pytest.mark.parametrize(
    "dtype",
    ["mixed_bfloat16", *(pytest.param(x, marks=SLOW) for x in ("bfloat16", "mixed_float16"))],
)
def test_half_precision(dtype):
    lm = causal_lm("gemma2", dtype=dtype)
    model = LanguageModel.from_causal_lm(lm)
    inputs, targets, weights = batch()
    expected = log_softmax(lm(inputs))
    assert model.head.compute_dtype == dtype.removeprefix("mixed_")
    np.testing.assert_allclose(numpy(model(inputs)), expected, atol=0.15)
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    losses = [model.train_on_batch(inputs, targets, weights) for _ in range(4)]
    assert losses[-1] < losses[0]


@pytest.mark.slow
def test_saved_and_loaded(tmp_path):
    lm = causal_lm("gpt2", reader())
    model = LanguageModel.from_causal_lm(lm, label_smoothing=0.1)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.label_smoothing == 0.1
    assert loaded.head.embedding is loaded.backbone.token_embedding
    expected = model.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(loaded.predict(TEXTS, verbose=0), expected, atol=1e-6)

    lm.save_to_preset(str(tmp_path / "preset"))
    again = keras_hub.models.CausalLM.from_preset(str(tmp_path / "preset"))
    again = LanguageModel.from_causal_lm(again)
    np.testing.assert_allclose(again.predict(TEXTS[:1], verbose=0)[0, 0], expected[0, 0], atol=1e-6)


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"CausalLM.from_preset\('gemma'\). Received: 'gemma'"):
        LanguageModel.from_causal_lm("gemma")
    with pytest.raises(ValueError, match=r"must be a keras_hub.models.CausalLM. Received"):
        LanguageModel.from_causal_lm(keras.Sequential())
    kind = keras_hub.models.GPT2CausalLM

    class Dense(kind):
        def __init__(self, backbone):
            hidden = backbone(backbone.input)
            self.backbone, self.preprocessor = backbone, None
            outputs = keras.layers.Dense(V)(hidden)
            keras_hub.models.CausalLM.__init__(self, inputs=backbone.input, outputs=outputs)

    with pytest.raises(ValueError, match=r"by a ReversibleEmbedding.*Received: Dense.*<Dense"):
        LanguageModel.from_causal_lm(Dense(causal_lm("gpt2").backbone))
