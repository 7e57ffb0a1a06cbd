"""Targets of another length than the tokens, where lengths are known only when a graph runs."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill

V, D, B, T = 31, 5, 8, 5
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
JITS = [False, True] if ON_TENSORFLOW else [False]


def errors():
    if not ON_TENSORFLOW:
        return ValueError
    import tensorflow as tf

    return (ValueError, tf.errors.InvalidArgumentError)


def make_model(jit_compile=False, **options):
    embedding = keras.layers.Embedding(V, D, **options)
    model = keras_drill.LanguageModel(
        keras.Sequential([embedding, keras.layers.Dense(D)]), keras_drill.TiedOutput(V, embedding)
    )
    metrics = [keras_drill.metrics.Perplexity()]
    model.compile("sgd", metrics=metrics, jit_compile=jit_compile)
    for length in (3, 4):  # the next length is a dynamic shape
        model.train_on_batch(*data(length, length))
        model.test_on_batch(*data(length, length))
    return model


def data(tokens, targets, rows=B):
    return np.ones((rows, tokens), "int32"), np.ones((rows, targets), "int32")


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", JITS)
def test_a_model_says_that_targets_have_another_length(jit_compile):
    model = make_model(jit_compile, mask_zero=not jit_compile)
    for y in (data(T, T + 2)[1], np.ones((B, T, 2), "int32")):
        with pytest.raises(ValueError, match=r"`y` must have one target .* Received: shape"):
            model.compute_loss(data(T, T)[0], y)
    sentence = "y.must.have.one.target.for.each.of.the.tokens"  # XLA has the name of an operation
    expected = f"(?s){sentence}|`y` must have one target"
    for length in (1, T + 2):
        for call in (model.train_on_batch, model.test_on_batch):
            with pytest.raises(errors(), match=expected):
                call(*data(T, length))


@pytest.mark.slow
def test_a_model_says_that_weights_have_another_length():
    model = make_model()
    for call in (model.train_on_batch, model.test_on_batch):
        for weights in (np.ones((B, T + 1)), np.ones((B, T, 2))):
            with pytest.raises(errors(), match=r"(?s)`sample_weight` must have the targets' shape"):
                call(*data(T, T), sample_weight=weights)
    for weights in (np.ones(B), np.ones((B, 1)), np.ones((B, T)), np.ones((B, T, 1))):
        model.train_on_batch(*data(T, T), sample_weight=weights)


FUNCTIONS = {
    "loss": lambda head, hidden, targets: head.loss(hidden, targets),
    "none": lambda head, hidden, targets: head.loss(hidden, targets, reduction="none"),
    "log_prob": lambda head, hidden, targets: head.log_prob(hidden, targets),
    "ranks": lambda head, hidden, targets: head.loss_log_prob_and_rank(hidden, targets)[2],
    "call": lambda head, hidden, targets: head(hidden, targets=targets),
    "operation": lambda head, hidden, targets: keras_drill.ops.linear_cross_entropy(
        hidden, head.label_embeddings, targets
    ),
}


@pytest.mark.skipif(not ON_TENSORFLOW, reason="JAX knows all shapes while tracing")
@pytest.mark.parametrize(
    ("name", "jit_compile"), [*((name, False) for name in FUNCTIONS), ("loss", True)]
)
def test_functions_say_that_targets_have_another_shape(name, jit_compile):
    import tensorflow as tf

    head = keras_drill.OutputLayer(V)
    head.build((None, None, D))
    traced = tf.function(
        lambda hidden, targets: FUNCTIONS[name](head, hidden, targets),
        input_signature=[
            tf.TensorSpec((None, None, D)),
            tf.TensorSpec((None, None), "int32"),
        ],
        jit_compile=jit_compile,
    )
    hidden = tf.ones((B, T, D))
    traced(hidden, tf.ones((B, T), "int32"))
    sentence = "`targets` must have the shape of `hidden`"
    if jit_compile:
        sentence = "targets_must_have_the_shape_of_hidden"
    for shape in ((B, T + 2),) if jit_compile else ((B, T + 2), (T, B)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"(?s){sentence}"):
            traced(hidden, tf.ones(shape, "int32"))


@pytest.mark.skipif(not ON_TENSORFLOW, reason="JAX knows all shapes while tracing")
@pytest.mark.parametrize("words", [(), (V,)])
def test_metrics_say_that_targets_have_another_shape(words):
    import tensorflow as tf

    metric = keras_drill.metrics.Perplexity()
    traced = tf.function(
        lambda y_true, y_pred: metric.update_state(y_true, y_pred),
        input_signature=[
            tf.TensorSpec((None, None), "int32"),
            tf.TensorSpec((None, None, *words)),
        ],
    )
    traced(ops.ones((B, T), "int32"), ops.zeros((B, T, *words)))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)`y_pred` must have the shape"):
        traced(ops.ones((B, T + 1), "int32"), ops.zeros((B, T, *words)))
