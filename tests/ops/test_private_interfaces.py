"""What is used of Keras and TensorFlow beyond their promises: in one module, and as it was."""

import ast
import pathlib
import types

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.ops import private_interfaces

on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="interfaces of TensorFlow"
)
PACKAGE = pathlib.Path(keras_drill.__file__).parent
OTHERS = ("keras.src", "tensorflow.python", "jax._src")
BY_NAME = ("_layers", "_trainable_variables", "_variables", "_keras_mask", "_keras_history")
PUBLIC = {"_replace", "_asdict", "_fields", "_make", "_exit"}  # of named tuples and `os`


def names_of_our_own(trees):
    """Names with an underscore in front that the package itself gives to something."""
    for node in (node for tree in trees.values() for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def private_uses(tree, ours):
    """`line: what` for every private interface of someone else's that a module uses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = node.attr
            dunder = name.startswith("__") and name.endswith("__")
            if name in ("raw_ops", "__internal__", "src") or (
                name.startswith("_") and not dunder and name not in ours | PUBLIC
            ):
                yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom | ast.Import):
            modules = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                modules = [f"{node.module}.{name}" for name in modules]
            for module in modules:
                private = any(part.startswith("_") for part in module.split("."))
                if module.startswith(OTHERS) or (private and not module.startswith("keras_drill")):
                    yield f"{node.lineno}: import of {module}"
        elif isinstance(node, ast.Constant) and node.value in BY_NAME:
            yield f"{node.lineno}: {node.value!r}"


def test_no_other_module_uses_a_private_interface():
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for path in PACKAGE.rglob("*.py")
        if path != pathlib.Path(private_interfaces.__file__)
    }
    ours = set(names_of_our_own(trees))
    found = [
        f"{path.relative_to(PACKAGE)}:{use}"
        for path, tree in trees.items()
        for use in private_uses(tree, ours)
    ]
    assert not found


@pytest.mark.parametrize(
    "source",
    [
        "layer._tracker.unlock()",
        "from keras.src.backend import get_keras_mask",
        "import tensorflow.python.framework",
        "tf.raw_ops.Empty()",
        "tf.__internal__.x()",
        "getattr(optimizer, '_trainable_variables')",
        "from tensorflow import _api",
    ],
)
def test_the_search_finds_them(source):
    assert list(private_uses(ast.parse(source), set()))


def test_masks_of_tensors():
    hidden = keras.layers.Embedding(5, 3, mask_zero=True)(np.array([[1, 0]]))
    np.testing.assert_array_equal(private_interfaces.keras_mask(hidden), [[True, False]])
    assert private_interfaces.keras_mask(ops.ones((2, 3))) is None


class Holder(keras.layers.Layer):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.others = [keras.layers.Dense(2), keras.layers.ReLU()]

    def call(self, x):
        return x


def test_whether_keras_only_asks_for_shapes():
    found = []

    class Asks(keras.layers.Layer):
        def call(self, x):
            found.append(private_interfaces.is_symbolic())
            return x

    layer = Asks()
    layer(ops.ones((2,)))
    layer(keras.Input((2,)))
    assert found == [False, True]


def test_which_model_is_called():
    found = []

    class Asks(keras.layers.Layer):
        def call(self, x):
            found.append(private_interfaces.called_model())
            return x

    layer = Asks()
    model = keras.Sequential([layer])
    model(ops.ones((2, 1)))
    layer(ops.ones((2, 1)))
    assert found[-2:] == [model, layer]
    assert private_interfaces.called_model() is None


@on_tensorflow
@pytest.mark.parametrize(
    ("replicas", "device", "steps", "is_refused"),
    [(2, "CPU", 2, True), (2, "CPU", 1, False), (2, "GPU", 2, False), (1, "CPU", 2, False)],
)
def test_several_steps_are_refused_on_several_cpus(replicas, device, steps, is_refused):
    devices = tuple(f"/device:{device}:{number}" for number in range(replicas))

    class Model(private_interfaces.FitsOnWorkers):
        distribute_strategy = types.SimpleNamespace(
            num_replicas_in_sync=replicas, extended=types.SimpleNamespace(worker_devices=devices)
        )

    model = Model()
    model.steps_per_execution = steps
    if is_refused:
        with pytest.raises(ValueError, match=r"`steps_per_execution` must be 1.*Received: .*=2"):
            model._make_function(lambda data: data)
    else:
        assert callable(model._make_function(lambda data: data))


def test_only_the_error_about_uneven_batches_is_replaced():
    class IndivisibleError(ValueError):
        pass

    for error, message in (
        (IndivisibleError("of JAX"), "must be a multiple of the"),
        (ValueError("another"), "^another$"),
    ):
        with pytest.raises(ValueError, match=message), private_interfaces._even_batches():
            raise error


def test_dropout_of_attention_weights():
    attention = keras.layers.MultiHeadAttention(1, 3, dropout=0.25, seed=7)
    attention.build((2, 5, 3), (2, 5, 3))
    dropout = private_interfaces.attention_dropout(attention)
    assert isinstance(dropout, keras.layers.Dropout) and dropout.rate == 0.25
    assert dropout.seed_generator.get_config()["seed"] == 7


@pytest.mark.parametrize("built", [True, False])
def test_a_replaced_sublayer_is_tracked_instead_of_the_old_one(built):
    old, new = keras.layers.Embedding(5, 3), keras.layers.Embedding(5, 3)
    holder = Holder(old)
    old.build(None), new.build(None)
    if built:
        holder(ops.ones((1, 2)))  # locks
    private_interfaces.replace_sublayer(holder, "inner", new)
    assert holder.inner is new
    assert [v is new.embeddings for v in holder.variables] == [True]
    layers = private_interfaces.all_layers(holder)
    assert sorted(map(id, layers)) == sorted(map(id, [holder, new, *holder.others]))


def test_the_producer_of_a_symbolic_tensor():
    a, b = keras.Input((3,)), keras.Input((3,))
    dense = keras.layers.Dense(3)
    first = dense(a)
    second = dense(keras.layers.add([first, b]))
    operation, call, (added,) = private_interfaces.producer(second)
    assert operation is dense and call == 1
    _, _, inputs = private_interfaces.producer(added)
    assert inputs[0] is first and inputs[1] is b
    assert private_interfaces.producer(a)[2] == []


def test_the_arguments_of_a_symbolic_call():
    table = keras.layers.Dense(3)
    inputs = keras.Input((5,))
    assert private_interfaces.call_arguments(inputs * 2.5)[0][1] == 2.5
    args, kwargs = private_interfaces.call_arguments(table(inputs, training=True))
    assert args[0] is inputs and kwargs["training"] is True


def test_a_replaced_loss_tracker_is_what_is_reported_and_is_not_saved(tmp_path):
    class Count(keras.metrics.Sum):
        def update_state(self, values, sample_weight=None):
            super().update_state(1.0)

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.save_weights(tmp_path / "before.weights.h5")
    model.compile("sgd", "mse")
    assert private_interfaces.loss_tracker(model).name == "loss"
    private_interfaces.replace_loss_tracker(model, Count(name="loss"))
    assert isinstance(private_interfaces.loss_tracker(model), Count)
    x, y = np.ones((6, 3)), np.ones((6, 2))
    assert model.fit(x, y, 2, verbose=0).history["loss"] == [3.0]
    assert [metric.name for metric in model.metrics] == ["loss"]
    model.load_weights(tmp_path / "before.weights.h5")


def test_slots_run_parallel_to_the_variables_that_an_optimizer_trains():
    variables = [keras.Variable(np.ones(n)) for n in (2, 3, 5)]
    optimizer = keras.optimizers.Adam(use_ema=True)
    assert private_interfaces.trained_variables(optimizer) == []
    optimizer.build(variables)
    trained = private_interfaces.trained_variables(optimizer)
    assert [a is b for a, b in zip(trained, variables, strict=True)] == [True] * 3
    slots = private_interfaces.slot_lists(optimizer)
    assert set(slots) == {"_momentums", "_velocities", private_interfaces.AVERAGES_OF_WEIGHTS}
    for same in slots.values():
        assert [tuple(slot.shape) for slot in same] == [(2,), (3,), (5,)]


def test_optimizers_that_wrap_others():
    one, two = keras.optimizers.Adam(), keras.optimizers.SGD()
    assert private_interfaces.single_optimizers(one) == [one]
    scaled = keras.optimizers.LossScaleOptimizer(one)
    assert private_interfaces.single_optimizers(scaled) == [one]
    if hasattr(keras.optimizers, "MultiOptimizer"):
        both = keras.optimizers.MultiOptimizer(lambda v: one if v.shape == (2,) else two)
        assert private_interfaces.single_optimizers(both) == []
        both.build([keras.Variable(np.ones(n)) for n in (2, 3)])
        scaled = keras.optimizers.LossScaleOptimizer(both)
        assert private_interfaces.single_optimizers(scaled) == [one, two]


@on_tensorflow
def test_whether_xla_compiles():
    import tensorflow as tf

    def ask():
        answers.append(private_interfaces.is_compiled_by_xla())
        return tf.zeros(())

    answers = []
    ask(), tf.function(ask)(), tf.function(ask, jit_compile=True)()
    assert answers == [False, False, True]


@on_tensorflow
@pytest.mark.parametrize("compiled", [True, False])
def test_rows_in_place(compiled):
    import tensorflow as tf

    def sums():
        one = private_interfaces.zeros_of_its_own([3, 2], "float32")
        two = private_interfaces.zeros_of_its_own([3, 2], "float32")
        one = private_interfaces.add_rows_in_place(one, [2, 0, 2], tf.ones((3, 2)))
        return one, two, private_interfaces.put_rows_in_place(one * 3, 1, tf.ones((2, 2)))

    one, two, three = tf.function(sums)() if compiled else sums()
    np.testing.assert_array_equal(one, [[1, 1], [0, 0], [2, 2]])
    np.testing.assert_array_equal(two, np.zeros((3, 2)))  # not merged with its twin
    np.testing.assert_array_equal(three, [[3, 3], [1, 1], [1, 1]])


@on_tensorflow
def test_cudnn_takes_the_arguments_that_it_is_given():
    """Only a GPU runs it (`tests/layers/test_cudnn.py`); tracing checks names and shapes."""
    import tensorflow as tf

    @tf.function
    def run():
        x, h = tf.zeros((7, 5, 3)), tf.zeros((1, 5, 2))
        return private_interfaces.run_cudnn("lstm", x, tf.zeros(4 * 2 * (3 + 2 + 2)), h, h)

    outputs, h, c = run.get_concrete_function().structured_outputs
    assert outputs.shape.rank == h.shape.rank == c.shape.rank == 3


@on_tensorflow
def test_keras_still_clips_before_it_adds_up_replicas():
    """When this fails, `FitsOnWorkers.compile` can go."""
    optimizer = keras.optimizers.SGD(global_clipnorm=1.0)
    seen = []
    optimizer._all_reduce_sum_gradients = lambda pairs: seen.extend(pairs) or pairs
    variable = keras.Variable([0.0])
    optimizer.apply([ops.convert_to_tensor([5.0])], [variable])
    np.testing.assert_allclose(seen[0][0], [1.0])
