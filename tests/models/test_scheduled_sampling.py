"""Words of the model's own in training: against plain loops, by their rate, and off."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.layers import AdditiveScore, Attention
from keras_drill.models import RecurrentEncoderDecoder, Transformer
from keras_drill.models.training_step import stepping
from keras_drill.optimizers import ExponentialSchedule, InverseSigmoidSchedule, LinearSchedule

V, D, B, S, T = 13, 6, 5, 3, 7
BACKBONES = {
    "Transformer": lambda **k: Transformer(
        V, D, num_layers=1, num_heads=2, feed_forward_dim=11, seed=1, **k
    ),
    "recurrent": lambda **k: RecurrentEncoderDecoder(V, D, units=7, cell="gru", seed=1, **k),
    "fed": lambda **k: RecurrentEncoderDecoder(
        V,
        D,
        units=7,
        attention=Attention(AdditiveScore(3)),
        input_feeding=True,
        seed=1,
        **k,
    ),
}
every_backbone = pytest.mark.parametrize("kind", BACKBONES)


def make(kind, rate, dropout=0.0, **options):
    keras.utils.set_random_seed(1)
    backbone = BACKBONES[kind](dropout=dropout)
    label_encoder = keras_drill.ResidualLabelEncoder(depth=1, activation="tanh")
    head = keras_drill.OutputLayer(V, embedding=backbone.embedding, label_encoder=label_encoder)
    sampling = None if rate is None else keras_drill.ScheduledSampling(rate, seed=2, **options)
    model = keras_drill.SequenceToSequence(backbone, head, scheduled_sampling=sampling)
    rng = np.random.default_rng(3)
    for variable in model.trainable_variables:  # decided, but not for one word alone
        variable.assign(variable + 0.3 * rng.normal(size=variable.shape))
    return model


def make_data():
    rng = np.random.default_rng(4)
    source, target = rng.integers(3, V, (B, S)), rng.integers(3, V, (B, T))
    target[:, 0] = 1
    target[1, 4:] = 0
    inputs = {"source": source.astype("int32"), "target": target.astype("int32")}
    return inputs, rng.integers(1, V, (B, T)).astype("int32")


def words_read(model, inputs, **choices):
    """What the backbone is given to read in a training step with these choices."""
    own_words = model.scheduled_sampling.begin(model, ops.convert_to_tensor(inputs["target"]))
    for name, value in choices.items():
        setattr(own_words, name, value)
    found = []

    class Spy(type(own_words)):
        def sample_sequentially(self, *arguments):
            found.append(super().sample_sequentially(*arguments))
            return found[0]

    own_words.__class__ = Spy
    if isinstance(model.backbone, Transformer):
        return ops.convert_to_numpy(own_words.sample_in_parallel(inputs))
    model.backbone(inputs, training=True, own_words=own_words)
    return ops.convert_to_numpy(found[0])


def literal(model, inputs, replaced, uniforms, in_turn):
    """The same in a loop over words, from the probabilities that the model gives whole targets."""
    words = inputs["target"].copy()
    for t in range(1, T):
        read = words if in_turn else inputs["target"]
        log_probs = ops.convert_to_numpy(model({**inputs, "target": read}))[:, t - 1]
        for row in range(B):
            probabilities = np.exp(np.float64(log_probs[row]))
            word = probabilities.argmax()
            if uniforms is not None:
                share = probabilities.cumsum() / probabilities.sum()
                word = np.searchsorted(share, uniforms[row, t], side="right")
            if replaced[row, t] and word != 0:
                words[row, t] = word
    return words


@pytest.mark.parametrize("argmax", [False, True])
@every_backbone
def test_words_are_those_of_a_loop_over_whole_targets(kind, argmax):
    model = make(kind, 0.5)
    inputs, _ = make_data()
    rng = np.random.default_rng(5)
    replaced = (rng.random((B, T)) < 0.6) & (inputs["target"] != 0) & (np.arange(T) > 0)
    uniforms = None if argmax else rng.random((B, T)).astype("float32")
    choices = {"replaced": replaced, "uniforms": uniforms}
    choices = {name: None if x is None else ops.convert_to_tensor(x) for name, x in choices.items()}
    found = words_read(model, inputs, **choices)
    in_turn = not isinstance(model.backbone, Transformer)
    np.testing.assert_array_equal(found, literal(model, inputs, replaced, uniforms, in_turn))
    assert (found != inputs["target"]).any()


@every_backbone
def test_at_rate_1_it_reads_what_it_says(kind):
    """After the start the most probable words: what greedy decoding writes, where it is in turn."""
    model = make(kind, 1.0, argmax=True)
    inputs, _ = make_data()
    inputs["target"][1] = inputs["target"][0]  # no padding
    everywhere = np.broadcast_to(np.arange(T) > 0, (B, T))
    in_turn = not isinstance(model.backbone, Transformer)
    expected = literal(model, inputs, everywhere, None, in_turn)
    np.testing.assert_array_equal(words_read(model, inputs), expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fed", "Transformer"])
def test_at_rate_0_nothing_changes(kind):
    inputs, labels = make_data()
    results = []
    for rate in (None, 0.0):
        model = make(kind, rate, dropout=0.2)
        model.compile(keras.optimizers.SGD(0.1), metrics=[keras_drill.metrics.Perplexity()])
        history = model.fit(inputs, labels, B, 2, shuffle=False, verbose=0).history
        variables = model.trainable_variables
        results.append([*history.values(), *map(ops.convert_to_numpy, variables)])
    # JAX compiles the whole step, and fuses another one otherwise.
    tolerance = 0 if keras.backend.backend() == "tensorflow" else 1e-5
    for off, zero in zip(*results, strict=True):
        np.testing.assert_allclose(zero, off, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Transformer", "fed"])
def test_gradients_are_those_of_a_step_on_the_words_that_are_read(kind):
    from tests.gradients import value_and_gradients

    sampled, plain = make(kind, 0.7), make(kind, None)
    inputs, labels = make_data()
    words = words_read(make(kind, 0.7), inputs)
    assert (words != inputs["target"]).any()

    def loss_of(model, target):
        def loss(rate):
            return rate * model.compute_loss({**inputs, "target": target}, labels)

        return value_and_gradients(loss, model.trainable_variables, np.float32(1))

    value, gradients, _ = loss_of(sampled, inputs["target"])
    expected_value, expected, _ = loss_of(plain, words)
    np.testing.assert_allclose(value, expected_value, rtol=1e-6)
    for a, b in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Transformer", "fed"])
def test_under_xla_a_step_reads_the_same_words(kind):
    """The most probable words, for the compilers draw other random numbers."""
    inputs, labels = make_data()
    losses = {}
    for rate, jit_compile in ((1.0, True), (1.0, False), (None, True)):
        model = make(kind, rate, **({} if rate is None else {"argmax": True}))
        model.compile(keras.optimizers.SGD(0.1), jit_compile=jit_compile)
        history = model.fit(inputs, labels, B, 2, shuffle=False, verbose=0).history
        losses[rate, jit_compile] = history["loss"]
    np.testing.assert_allclose(losses[1.0, True], losses[1.0, False], rtol=1e-4)
    assert abs(losses[1.0, True][0] / losses[None, True][0] - 1) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["recurrent", "fed"])
def test_under_xla_words_are_drawn_at_the_rate(kind):
    inputs, labels = make_data()
    model = make(kind, 0.5, dropout=0.1)
    model.compile(keras.optimizers.SGD(0.0), jit_compile=True)
    found = [model.train_on_batch(inputs, labels) for _ in range(5)]
    assert np.isfinite(found).all() and len(set(map(float, found))) == 5  # drawn anew in each step
    assert int(model.scheduled_sampling.step) == 5


def test_words_are_replaced_at_the_rate_of_the_step():
    sampling = keras_drill.ScheduledSampling(LinearSchedule(4, final_rate=0.8), seed=1)
    target = ops.convert_to_tensor(np.tile([[1, 3, 4, 0]], (1000, 1)))
    shares = []
    for _ in range(6):
        own_words = sampling.begin(make("recurrent", None), target)
        replaced = ops.convert_to_numpy(own_words.replaced)
        assert not replaced[:, [0, 3]].any()
        shares.append(replaced[:, 1:3].mean())
    np.testing.assert_allclose(shares, [0, 0.2, 0.4, 0.6, 0.8, 0.8], atol=0.04)
    assert int(sampling.step) == 6


def test_padding_is_never_chosen():
    model = make("recurrent", 1.0)
    model.head.bias.assign(np.where(np.arange(V) == 0, 30.0, 0.0))
    inputs, _ = make_data()
    np.testing.assert_array_equal(words_read(model, inputs), inputs["target"])


@pytest.mark.slow
def test_evaluation_reads_the_target():
    model, off = make("fed", 1.0), make("fed", None)
    inputs, labels = make_data()
    for each in (model, off):
        each.compile("sgd")
    assert model.evaluate(inputs, labels, verbose=0) == off.evaluate(inputs, labels, verbose=0)
    with stepping(model):
        found = model(inputs, training=False).hidden
    np.testing.assert_array_equal(found, off.backbone(inputs))
    assert int(model.scheduled_sampling.step) == 0


@pytest.mark.slow
def test_training_goes_on_to_the_bit_from_its_variables(tmp_path):
    inputs, labels = make_data()

    def make_compiled():
        model = make("fed", InverseSigmoidSchedule(2.0), dropout=0.1)
        model.compile("adam")
        model.optimizer.build(model.trainable_variables)
        return model

    model, results = make_compiled(), []
    for _ in range(2):
        for _ in range(2):
            model.train_on_batch(inputs, labels)
        variables = [*model.variables, *model.optimizer.variables]
        results.append([ops.convert_to_numpy(v) for v in variables])
    again = make_compiled()
    variables = [*again.variables, *again.optimizer.variables]
    for variable, value in zip(variables, results[0], strict=True):
        variable.assign(value)
    for _ in range(2):
        again.train_on_batch(inputs, labels)
    for variable, expected in zip(variables, results[1], strict=True):
        np.testing.assert_array_equal(variable, expected, err_msg=variable.path)
    model.save(tmp_path / "model.keras")
    sampling = keras.models.load_model(tmp_path / "model.keras").scheduled_sampling
    assert int(sampling.step) == 4
    assert sampling.get_config() == model.scheduled_sampling.get_config()


@pytest.mark.parametrize(
    ("schedule", "formula"),
    [
        (LinearSchedule(10, 0.9, 0.1), lambda i: 0.1 + 0.8 * np.minimum(i / 10, 1)),
        (ExponentialSchedule(0.9), lambda i: 1 - 0.9**i),
        (InverseSigmoidSchedule(7.0), lambda i: 1 - 7 / (7 + np.exp(i / 7))),
    ],
)
def test_schedules(schedule, formula):
    again = type(schedule).from_config(schedule.get_config())
    for step in (0, 1, 9, 70, 10_000):
        with np.errstate(over="ignore"):
            expected = formula(np.float64(step))
        assert float(schedule(step)) == pytest.approx(expected, abs=1e-6)
        assert float(again(step)) == float(schedule(step))


def test_wrong_arguments_are_named():
    for make_wrong, message in [
        (lambda: keras_drill.ScheduledSampling(1.5), "`rate` must be a number in"),
        (lambda: LinearSchedule(0), "`steps` must be at least 1"),
        (lambda: LinearSchedule(3, 1.1), "`final_rate` must be in"),
        (lambda: ExponentialSchedule(1.0), "`k` must be in"),
        (lambda: InverseSigmoidSchedule(0.5), "`k` must be at least 1"),
        (
            lambda: keras_drill.SequenceToSequence(
                BACKBONES["recurrent"](), keras_drill.OutputLayer(V), scheduled_sampling=0.5
            ),
            "`scheduled_sampling` must be a keras_drill.ScheduledSampling",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            make_wrong()
