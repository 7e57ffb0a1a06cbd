import keras
import numpy as np
import pytest
from keras import ops
from keras.optimizers import schedules

from keras_drill.optimizers import reset_optimizer_rows

M, D = 7, 11
ROWS = np.isin(np.arange(M), [1, 4])
SHAPES = {"table": (M, D), "vector": (M,)}

o = keras.optimizers
OPTIMIZERS = {
    "SGD": lambda: o.SGD(0.1),
    "SGD with momentum": lambda: o.SGD(0.1, momentum=0.9, nesterov=True),
    "Adam": lambda: o.Adam(0.1),
    "Adam with amsgrad": lambda: o.Adam(0.1, amsgrad=True),
    "Adam on a schedule": lambda: o.Adam(schedules.ExponentialDecay(0.1, 3, 0.5)),
    "Adam with EMA": lambda: o.Adam(0.1, use_ema=True),
    "AdamW": lambda: o.AdamW(0.1),
    "Adamax": lambda: o.Adamax(0.1),
    "Nadam": lambda: o.Nadam(0.1),
    "Adagrad": lambda: o.Adagrad(0.1, initial_accumulator_value=0.3),
    "Adadelta": lambda: o.Adadelta(0.1),
    "Adafactor": lambda: o.Adafactor(0.1),
    "Ftrl": lambda: o.Ftrl(0.1, initial_accumulator_value=0.3),
    "Lion": lambda: o.Lion(0.1),
    "Lamb": lambda: o.Lamb(0.1),
    "RMSprop": lambda: o.RMSprop(0.1, momentum=0.9, centered=True),
    "LossScaleOptimizer": lambda: o.LossScaleOptimizer(o.Adagrad(0.1)),
    "accumulation": lambda: o.Adam(0.1, gradient_accumulation_steps=2),
}
# Keras 3.12's Muon cannot make a step on TensorFlow: it asks tf.Variables for their `path`.
if keras.backend.backend() != "tensorflow" or not keras.__version__.startswith("3.12."):
    OPTIMIZERS["Muon"] = lambda: o.Muon(0.1, exclude_embeddings=False)
    OPTIMIZERS["Muon without embeddings"] = lambda: o.Muon(0.1)
if hasattr(o, "ScheduleFreeAdamW"):
    OPTIMIZERS["ScheduleFreeAdamW"] = lambda: o.ScheduleFreeAdamW(0.1)


def variables(shape, seed=0):
    """Two variables, so that slots are told from lists of another length."""
    rng = np.random.default_rng(seed)
    with keras.name_scope("embedding"):
        return [
            keras.Variable(rng.normal(size=s), dtype="float32", name="x") for s in [(2, 3), shape]
        ]


def step(optimizer, trained, seed):
    rng = np.random.default_rng(seed)
    gradients = [ops.convert_to_tensor(rng.normal(size=v.shape), "float32") for v in trained]
    if keras.backend.backend() == "tensorflow":
        optimizer.apply(gradients)
        return
    updated = optimizer.stateless_apply(
        [ops.copy(v) for v in optimizer.variables], gradients, [ops.copy(v) for v in trained]
    )
    for variables, values in zip((trained, optimizer.variables), updated, strict=True):
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)


def state(optimizer):
    """All variables, those that Keras does not track among them."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    found = {}
    for name, value in vars(inner).items():
        if isinstance(value, list) and name != "_trainable_variables":
            found.update({f"{name}/{i}": v for i, v in enumerate(value) if v is not None})
    return {name: np.array(ops.convert_to_numpy(v)) for name, v in found.items()}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_rows_are_those_of_a_new_optimizer_and_others_untouched(name, shape):
    trained = variables(shape)
    optimizer = OPTIMIZERS[name]()
    optimizer.build(trained)
    for seed in range(3):
        step(optimizer, trained, seed)
    before, weights = state(optimizer), np.array(ops.convert_to_numpy(trained[1]))
    reset_optimizer_rows(optimizer, trained[1], ROWS)
    after = state(optimizer)

    new = OPTIMIZERS[name]()
    for variable in trained:
        variable.assign(ops.copy(variable))
    new.build(trained)
    initial = state(new)
    slots = 0
    for key, value in after.items():
        if key.endswith("/1") and value.shape[:1] == (M,):
            slots += 1
            fresh = weights if "moving_average" in key else initial[key]
            np.testing.assert_array_equal(value[ROWS], fresh[ROWS], err_msg=key)
            np.testing.assert_array_equal(value[~ROWS], before[key][~ROWS], err_msg=key)
        elif not key.startswith("_variables"):
            np.testing.assert_array_equal(value, before[key], err_msg=key)
    np.testing.assert_array_equal(ops.convert_to_numpy(trained[1]), weights)
    if name != "SGD":
        assert slots


@pytest.mark.parametrize("name", ["SGD with momentum", "Adagrad", "RMSprop", "Lion", "Adadelta"])
def test_reset_rows_move_like_those_of_a_new_optimizer(name):
    trained, others = variables((M, D)), variables((M, D))
    optimizer, new = OPTIMIZERS[name](), OPTIMIZERS[name]()
    optimizer.build(trained)
    new.build(others)
    for seed in range(3):
        step(optimizer, trained, seed)
    reset_optimizer_rows(optimizer, trained[1], ROWS)
    for variable, other in zip(trained, others, strict=True):
        other.assign(variable)
    step(optimizer, trained, 3)
    step(new, others, 3)
    found, expected = (np.asarray(ops.convert_to_numpy(v[1])) for v in (trained, others))
    np.testing.assert_allclose(found[ROWS], expected[ROWS], rtol=1e-6)
    assert np.abs(found - expected)[~ROWS].max() > 1e-5


def test_square_tables_columns_are_left_alone():
    trained = variables((M, M))
    optimizer = o.Adafactor(0.1)
    optimizer.build(trained)
    step(optimizer, trained, 0)
    before = state(optimizer)
    reset_optimizer_rows(optimizer, trained[1], ROWS)
    np.testing.assert_array_equal(state(optimizer)["_c/1"], before["_c/1"])
    assert (state(optimizer)["_r/1"] != before["_r/1"]).tolist() == ROWS.tolist()


@pytest.mark.skipif(not hasattr(o, "MultiOptimizer"), reason="this Keras has no MultiOptimizer")
def test_multi_optimizer():
    trained = variables((M, D))
    adagrad = o.Adagrad(0.1, initial_accumulator_value=0.3)
    others = o.SGD(0.1, momentum=0.9)
    optimizer = o.MultiOptimizer(lambda v: adagrad if v.shape == (M, D) else others)
    optimizer.build(trained)
    step(optimizer, trained, 0)
    reset_optimizer_rows(optimizer, trained[1], ROWS)
    slot = np.asarray(ops.convert_to_numpy(adagrad._accumulators[0]))
    assert ((slot == np.float32(0.3)).all(-1) == ROWS).all()


def test_what_the_optimizer_does_not_train_is_left_alone():
    trained = variables((M, D))
    optimizer = o.Adam(0.1)
    reset_optimizer_rows(optimizer, trained[1], ROWS)  # not built
    optimizer.build(trained[:1])
    reset_optimizer_rows(optimizer, trained[1], ROWS)
    assert len(optimizer.variables) == 4
