"""Training steps that are not ours: they have the one loss, or are told how to."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.models.training_step import StepOutput

V, D, B, T = 31, 13, 5, 7
on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="train steps are written for a backend"
)
ARGUMENTS = {"label_smoothing": 0.2}


def make_model(cls, **options):
    keras.utils.set_random_seed(0)
    embedding = keras.layers.Embedding(V, D, mask_zero=True)
    backbone = keras.Sequential([embedding, keras.layers.GRU(D, return_sequences=True)])
    model = cls(backbone, keras_drill.OutputLayer(V, embedding=embedding, z_loss=0.1), **ARGUMENTS)
    model.compile(keras.optimizers.SGD(0.1), metrics=[keras_drill.metrics.Perplexity()], **options)
    return model


def make_data():
    rng = np.random.default_rng(0)
    tokens, targets = rng.integers(1, V, (2, B, T)).astype("int32")
    tokens[1, 3:] = 0
    return tokens, targets, rng.random((B, T)).astype("float32")


class OwnSteps(keras_drill.LanguageModel):
    """Steps as Keras' guides write them."""

    def train_step(self, data):
        import tensorflow as tf

        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight)
        assert y_pred.log_probs is None
        variables = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
        return {metric.name: metric.result() for metric in self.metrics[:1]}

    def test_step(self, data):
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False)
        self.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False)
        return self.compute_metrics(x, y, y_pred, sample_weight)


@pytest.mark.slow
@on_tensorflow
@pytest.mark.parametrize("options", [{}, {"run_eagerly": True}], ids=str)
def test_a_step_of_ones_own_has_the_fused_loss(options):
    tokens, targets, weights = make_data()
    results = []
    for cls in (keras_drill.LanguageModel, OwnSteps):
        model = make_model(cls, **options)
        model.fit(tokens, targets, B, sample_weight=weights, verbose=0)
        found = model.evaluate(tokens, targets, sample_weight=weights, verbose=0, return_dict=True)
        results.append([*found.values(), *model.get_weights()])
        assert model(tokens).shape == (B, T, V)
    for expected, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_a_loop_outside_of_any_step_has_it_too():
    tokens, targets, weights = make_data()
    model = make_model(keras_drill.LanguageModel)
    expected = model.evaluate(tokens, targets, sample_weight=weights, verbose=0, return_dict=True)
    model.reset_metrics()
    model.compute_loss(tokens, targets, sample_weight=weights, training=False)
    for name, value in model.get_metrics_result().items():
        assert float(value) == pytest.approx(expected[name], rel=1e-5)


@pytest.mark.slow
@on_tensorflow
def test_gradients_outside_of_any_step():
    import tensorflow as tf

    tokens, targets, weights = make_data()
    one, two = (make_model(keras_drill.LanguageModel) for _ in range(2))
    one.train_on_batch(tokens, targets, weights)
    two(tokens)
    with tf.GradientTape() as tape:
        loss = two.compute_loss(tokens, targets, sample_weight=weights)
    two.optimizer.apply(tape.gradient(loss, two.trainable_variables), two.trainable_variables)
    for a, b in zip(one.get_weights(), two.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_log_probabilities_are_refused_with_what_to_write():
    model = make_model(keras_drill.LanguageModel)
    tokens, targets, _ = make_data()
    with pytest.raises(ValueError, match=r"Write `loss = model.compute_loss\(x, y, sample_weight="):
        model.compute_loss(tokens, targets, model(tokens))


def test_metrics_of_what_a_step_gives_are_refused():
    model = make_model(keras_drill.LanguageModel)
    tokens, targets, _ = make_data()
    model.test_on_batch(tokens, targets)
    y_pred = StepOutput(None, model.backbone(tokens), None)
    for metric in model.metrics[1:]:  # as in the loop that closes the step of Keras' guides
        with pytest.raises(ValueError, match=r"get_metrics_result.*Received: y_pred=None"):
            metric.update_state(targets, y_pred)


@pytest.mark.parametrize("reduction", ["none", "sum"])
def test_what_layers_add_is_counted_once(reduction):
    class Penalised(keras.layers.Layer):
        def call(self, x):
            self.add_loss(ops.ones((2,)))
            return x

    tokens, targets, _ = make_data()
    embedding = keras.layers.Embedding(V, D)
    losses = []
    for layers in ([embedding], [embedding, Penalised()]):
        backbone = keras.Sequential(layers)
        head = keras_drill.OutputLayer(V, embedding=embedding, use_bias=False)
        model = keras_drill.LanguageModel(backbone, head, reduction=reduction)
        losses.append(float(ops.sum(model.compute_loss(tokens, targets))))
    assert losses[1] == pytest.approx(losses[0] + 2, rel=1e-5)
