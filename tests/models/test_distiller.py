"""Students of teachers with every kind of head, against the formula with all log-probabilities."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill import (
    Distiller,
    DrillOutput,
    KernelizedBayesianSoftmax,
    LanguageModel,
    MixtureOfSoftmaxes,
    OutputLayer,
    SequenceToSequence,
    TiedOutput,
)
from tests.gradients import value_and_gradients

V, B, T = 31, 3, 7
RANDOM = np.random.default_rng(0)
TOKENS, TARGETS = RANDOM.integers(1, V, (2, B, T)).astype("int32")
TOKENS[0, 4:] = 0  # masked
WEIGHTS = RANDOM.choice([0.0, 0.5, 1.0], (B, T)).astype("float32")
STUDENTS = {
    "tied": lambda embedding: TiedOutput(V, embedding, tile_size=4),
    "drill": lambda embedding: DrillOutput(V, embedding, depth=1, logit_soft_cap=5.0, z_loss=0.01),
    "kernel": lambda embedding: OutputLayer(V, embedding, score=keras_drill.scores.KerBSKernel()),
}
TEACHERS = {
    "softmax": lambda embedding: OutputLayer(V, logit_soft_cap=3.0),
    "kerbs": lambda embedding: KernelizedBayesianSoftmax(V, num_senses=2 * V + 3),
    "mixture": lambda embedding: MixtureOfSoftmaxes(V, embedding, num_mixtures=3),
}


def language_model(make_head, width, seed=1, **options):
    keras.utils.set_random_seed(seed)
    embedding = keras.layers.Embedding(V, width, mask_zero=True)
    inputs = keras.Input((None,), dtype="int32")
    hidden = keras.layers.Dense(width, "tanh")(embedding(inputs))
    model = LanguageModel(keras.Model(inputs, hidden), make_head(embedding), **options)
    random = np.random.default_rng(seed)
    for weight in model.trainable_weights:
        weight.assign(random.normal(size=weight.shape, scale=0.6))
    return model


def teacher_of(kind="softmax", seed=2):
    teacher = language_model(TEACHERS[kind], width=11, seed=seed)
    teacher.trainable = False
    return teacher


def formula(student, teacher, divergence, temperature, weight, smoothing):
    """The mean loss, from log-probabilities of all words."""
    log_p, log_q = teacher(TOKENS), student(TOKENS)
    of_words = -ops.take_along_axis(log_q, TARGETS[..., None], -1)[..., 0]
    cross_entropy = (1 - smoothing) * of_words - smoothing * ops.mean(log_q, -1)
    log_p, log_q = (ops.log_softmax(x / temperature) for x in (log_p, log_q))
    if divergence == "reverse_kl":
        log_p, log_q = log_q, log_p
    losses = temperature**2 * ops.sum(ops.exp(log_p) * (log_p - log_q), -1)
    mask = (TOKENS != 0).astype("float32")
    losses = weight * cross_entropy + (1 - weight) * losses
    return ops.sum(WEIGHTS * mask * losses) / mask.sum()


@pytest.mark.parametrize(
    ("student", "teacher", "divergence"),
    [
        ("tied", "softmax", "forward_kl"),
        ("tied", "kerbs", "reverse_kl"),
        ("drill", "mixture", "forward_kl"),
        ("kernel", "softmax", "reverse_kl"),
    ],
)
def test_loss_and_gradients(student, teacher, divergence):
    model = language_model(STUDENTS[student], width=5, label_smoothing=0.1)
    model.head.z_loss = 0.0  # which is no part of the formula
    taught = teacher_of(teacher)
    options = {"divergence": divergence, "temperature": 2.0}
    distiller = Distiller(taught, model, cross_entropy_weight=0.3, **options)
    variables = model.trainable_variables

    def loss():
        return distiller.compute_loss(TOKENS, TARGETS, sample_weight=WEIGHTS)

    def expected_loss():
        return formula(model, taught, divergence, 2.0, 0.3, 0.1)

    value, gradients, *_ = value_and_gradients(loss, variables)
    expected, references, *_ = value_and_gradients(expected_loss, variables)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for variable, gradient, reference in zip(variables, gradients, references, strict=True):
        scale = np.abs(reference).max()
        np.testing.assert_allclose(
            gradient, reference, rtol=1e-3, atol=1e-5 * scale, err_msg=variable.path
        )
    assert {v.path for v in distiller.trainable_variables} == {v.path for v in variables}


@pytest.mark.slow
def test_fit_evaluate_and_save(tmp_path):
    teacher, student = teacher_of(), language_model(STUDENTS["drill"], width=5)
    before = [np.asarray(v) for v in teacher.variables]
    distiller = Distiller(teacher, student, "jensen_shannon", beta=0.3, name="pupil")
    metrics = [keras_drill.metrics.Perplexity(), "accuracy"]
    distiller.compile(keras.optimizers.Adam(0.02), metrics=metrics, jit_compile=False)
    data = (TOKENS, TARGETS, WEIGHTS)
    history = distiller.fit(*data[:2], sample_weight=WEIGHTS, epochs=4, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    assert sorted(history) == ["accuracy", "loss", "perplexity"]
    for variable, value in zip(teacher.variables, before, strict=True):
        np.testing.assert_array_equal(variable, value)
    np.testing.assert_array_equal(
        distiller.predict(TOKENS, verbose=0), student.predict(TOKENS, verbose=0)
    )
    figures = distiller.evaluate(*data[:2], sample_weight=WEIGHTS, verbose=0, return_dict=True)
    student.compile(metrics=[keras_drill.metrics.Perplexity()], jit_compile=False)
    alone = student.evaluate(*data[:2], sample_weight=WEIGHTS, verbose=0, return_dict=True)
    np.testing.assert_allclose(figures["perplexity"], alone["perplexity"], rtol=1e-5)

    distiller.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    options = ("name", "divergence", "beta", "temperature", "cross_entropy_weight")
    assert [getattr(again, x) for x in options] == [getattr(distiller, x) for x in options]
    assert not again.teacher.trainable_variables
    found = again.evaluate(*data[:2], sample_weight=WEIGHTS, verbose=0, return_dict=True)
    for name, value in figures.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, err_msg=name)


@pytest.mark.slow
def test_compiled_by_xla_it_trains_alike():
    histories = []
    for jit_compile in (False, True):
        student = language_model(STUDENTS["tied"], width=5)
        distiller = Distiller(teacher_of("mixture"), student, temperature=2.0)
        distiller.compile(keras.optimizers.SGD(0.1), jit_compile=jit_compile)
        histories.append(distiller.fit(TOKENS, TARGETS, epochs=3, verbose=0).history["loss"])
    np.testing.assert_allclose(*histories, rtol=1e-4)


@pytest.mark.slow
def test_sequence_to_sequence():
    def model(units, **options):
        backbone = keras_drill.models.RecurrentEncoderDecoder(V, 6, units=units)
        return SequenceToSequence(backbone, TiedOutput(V, backbone.embedding), **options)

    teacher = model(units=11)
    teacher.trainable = False
    student = model(units=5, scheduled_sampling=keras_drill.ScheduledSampling(0.5, seed=1))
    distiller = Distiller(teacher, student)
    distiller.compile(keras.optimizers.Adam(0.01))
    inputs = {"source": TOKENS, "target": TOKENS}
    losses = distiller.fit(inputs, TARGETS, epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


def wrong_arguments():
    student, teacher = language_model(STUDENTS["tied"], width=5), teacher_of()
    other = LanguageModel(keras.Sequential([keras.layers.Embedding(7, 3)]), OutputLayer(7))
    other.build((None, None))
    other.trainable = False
    unbuilt = LanguageModel(keras.Sequential([keras.layers.Embedding(V, 3)]), OutputLayer(V))
    trains = language_model(TEACHERS["softmax"], width=5)
    senses = language_model(TEACHERS["kerbs"], width=5)
    mixture = language_model(TEACHERS["mixture"], width=5)
    return [
        ((keras.Sequential(), student), {}, "`teacher` must be a keras_drill.LanguageModel"),
        ((teacher, keras.Sequential()), {}, "`student` must be a keras_drill.LanguageModel"),
        ((other, student), {}, "`teacher` must have the student's vocabulary"),
        ((unbuilt, student), {}, "`teacher` must be a trained model"),
        ((trains, student), {}, "`teacher` must be frozen"),
        ((teacher, senses), {}, "`student` must have an output layer with one label per word"),
        ((teacher, mixture), {}, "`student` must have an output layer with one label per word"),
        ((teacher, student), {"divergence": "kl"}, "`divergence` must be"),
        ((teacher, student), {"temperature": 0}, "`temperature` must be"),
        ((teacher, student), {"cross_entropy_weight": 1.5}, "`cross_entropy_weight` must be"),
    ]


def test_what_is_refused():
    for arguments, options, message in wrong_arguments():
        with pytest.raises(ValueError, match=f"{message}.*Received"):
            Distiller(*arguments, **options)
    teacher = teacher_of()
    distiller = Distiller(teacher, language_model(STUDENTS["tied"], width=5))
    teacher.trainable = True
    with pytest.raises(ValueError, match=r"`teacher` must be frozen.*Received"):
        distiller.compile()
