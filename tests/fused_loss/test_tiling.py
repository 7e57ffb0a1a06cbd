"""How work is cut on each kind of device."""

import keras
import pytest

import keras_drill
from keras_drill.fused_loss import tiling
from keras_drill.fused_loss.inputs import Distillation, WalkOptions, tokens_per_tile
from keras_drill.fused_loss.linear_cross_entropy import linear_cross_entropy
from keras_drill.ops.device_kind import assume_device, device_kind, is_accelerator
from keras_drill.scores import InnerProduct, KerBSKernel, Score

MIB = 2**20


@pytest.mark.parametrize(
    ("kind", "dtype", "num_labels", "width", "given", "tokens", "block"),
    [
        ("cpu", "float32", 33_278, 400, None, 1134, 16_640),
        ("cpu", "bfloat16", 128_256, 2_560, None, 294, 3_328),
        ("cpu", "float32", 1_009, 7, None, 37_412, 1_024),
        ("cpu", "bfloat16", 128_256, 2_560, 36 * MIB, 73, 3_328),
        ("gpu", "bfloat16", 128_256, 2_560, None, 4185, 128_256),
        ("gpu", "float32", 128_256, 2_560, None, 2092, 128_256),
        ("tpu", "bfloat16", 262_144, 2_304, None, 2048, 262_144),
        ("gpu", "bfloat16", 262_144, 2_304, 64 * MIB, 64, 262_144),
        ("gpu", "float16", 11, 3, 1, 1, 11),
    ],
)
def test_decisions(kind, dtype, num_labels, width, given, tokens, block):
    options = WalkOptions(InnerProduct(), compute_dtype=dtype, tile_bytes=given)
    with assume_device(kind):
        assert tokens_per_tile(1, num_labels, options) == tokens
        assert min(tiling.labels_per_block(num_labels, width, 256), num_labels) == min(
            block, num_labels
        )
        assert tokens_per_tile(1, num_labels, options._replace(tile_size=13)) == 13


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_in_distillation_a_tile_holds_student_and_teacher(kind):
    alone = WalkOptions(InnerProduct(), tile_bytes=1024 * 101)
    with assume_device(kind):
        tokens = tokens_per_tile(3, 101, alone)
        both = tokens_per_tile(3, 101, alone._replace(distillation=Distillation()))
    assert both == tokens // 2 > 0


def test_tiles_are_padded_on_accelerators_only():
    assert tiling.padded_tokens(1001) == 1001
    with assume_device("gpu"):
        assert [tiling.padded_tokens(size) for size in (1, 128, 129, 1001)] == [1, 128, 256, 1024]


def test_the_gradient_of_the_labels_decides_on_cpus_only():
    gradient = 1024 * MIB
    assert tiling.default_tile_bytes(0) == 144 * MIB
    assert tiling.default_tile_bytes(gradient) == 384 * MIB
    assert tiling.default_tile_bytes(0, least=192 * MIB) == 192 * MIB
    with assume_device("tpu"):
        assert tiling.default_tile_bytes(gradient) == 2048 * MIB


def test_the_present_device_and_unknown_ones():
    assert device_kind() == "cpu" and not is_accelerator()
    with (
        pytest.raises(ValueError, match=r"`kind` must be one of .* Received: kind='npu'"),
        assume_device("npu"),
    ):
        pass
    assert device_kind() == "cpu"


jax_only = pytest.mark.skipif(keras.backend.backend() != "jax", reason="traces of JAX")


def value_and_grad():
    import jax

    return jax.value_and_grad(linear_cross_entropy, argnums=(0, 1))


def shapes(n, v, d, dtype="bfloat16"):
    import jax

    return (
        jax.ShapeDtypeStruct((n, d), dtype),
        jax.ShapeDtypeStruct((v, d), dtype),
        jax.ShapeDtypeStruct((n,), "int32"),
    )


def products(jaxpr):
    """The large matrix products of a traced function: operands and results."""
    found = []
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            operands = [x.aval for x in equation.invars]
            if min(x.size for x in operands) > 2**20:
                found.append((operands, equation.outvars[0].aval))
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                found += products(inner)
    return found


@jax_only
@pytest.mark.parametrize("tokens", [32_768, 30_001])
def test_a_gpu_makes_three_products_a_tile_over_all_labels(tokens):
    import jax

    with assume_device("gpu"):
        traced = jax.make_jaxpr(value_and_grad())(*shapes(tokens, 128_256, 2_560))
    found = products(traced.jaxpr)
    assert len(found) == 3  # in the body of the loop
    rows = {x.shape[0] for operands, _ in found for x in operands} - {128_256}
    (size,) = rows - {2_560}
    assert -(-tokens // size) <= 8 and size % 128 == 0
    for operands, _ in found:
        assert all(x.dtype == "bfloat16" for x in operands)
    # Gradients come out of the products in float32: they are added up, and rounded once.
    assert sorted(str(result.dtype) for _, result in found) == ["bfloat16", "float32", "float32"]


@jax_only
def test_it_lowers_for_gpus_and_tpus():
    import jax

    for kind, platform in (("gpu", "cuda"), ("tpu", "tpu")):
        with assume_device(kind):
            exported = jax.export.export(jax.jit(value_and_grad()), platforms=[platform])(
                *shapes(1_024, 4_099, 257)
            )
        assert exported.platforms == (platform,)


def kerbs_value_and_grad(variant, vocabulary_size, width, dtype):
    """A function of weights, hidden states and targets; the weights, with θ of all sizes."""
    import jax
    import numpy as np

    head = keras_drill.KernelizedBayesianSoftmax(vocabulary_size, variant=variant, dtype=dtype)
    head.build((None, width))
    (theta,) = (x for x in head.trainable_variables if x.ndim == 1)
    theta.assign(np.resize([0.0, 1e-3, -0.4, 0.6, 3.0, -2.0, 11.0], theta.shape))
    constants = [x for x in head.variables if all(x is not y for y in head.trainable_variables)]

    def loss(values, hidden, targets):
        mapping = list(zip(head.trainable_variables, values, strict=True))
        mapping += [(x, x.value) for x in constants]
        with keras.StatelessScope(state_mapping=mapping):
            return head.loss(hidden, targets)

    values = [x.value for x in head.trainable_variables]
    return jax.value_and_grad(loss, argnums=(0, 1)), values


@jax_only
@pytest.mark.parametrize("variant", ["paper", "reference"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-6), ("mixed_bfloat16", 2e-2)])
def test_kerbs_has_the_same_gradients_on_accelerators(variant, dtype, tolerance):
    import jax
    import numpy as np

    rng = np.random.default_rng(1)
    hidden = jax.numpy.asarray(rng.normal(size=(307, 13)).astype("float32"))
    targets = rng.integers(0, 101, 307)
    function, values = kerbs_value_and_grad(variant, 101, 13, dtype)
    found = []
    for kind in ("cpu", "gpu"):
        with assume_device(kind):
            found.append(jax.tree.leaves(function(values, hidden, targets)))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, atol=tolerance * np.abs(a).max())


@jax_only
def test_a_score_without_sums_of_its_own_has_the_same_gradients(monkeypatch):
    import jax
    import numpy as np

    hidden = np.random.default_rng(0).normal(size=(307, 13)).astype("float32")
    targets = np.arange(307) % 101
    function, values = kerbs_value_and_grad("paper", 101, 13, "float32")
    found = []
    with assume_device("gpu"):
        found.append(jax.tree.leaves(function(values, hidden, targets)))
        monkeypatch.setattr(KerBSKernel, "product_sums", Score.product_sums)
        found.append(jax.tree.leaves(function(values, hidden, targets)))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5 * np.abs(a).max())


@jax_only
def test_kerbs_gives_no_matrix_of_float32_to_a_product():
    import jax

    function, values = kerbs_value_and_grad("paper", 1_009, 1_031, "mixed_bfloat16")
    hidden, _, targets = shapes(2_048, 1, 1_031)
    with assume_device("gpu"):
        found = products(jax.make_jaxpr(function)(values, hidden, targets).jaxpr)
    assert len(found) == 3
    assert all(x.dtype == "bfloat16" for operands, _ in found for x in operands)


@jax_only
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_the_cut_changes_nothing_but_the_last_digits(dtype):
    import jax
    import numpy as np

    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=size).astype(dtype) for size in ((307, 13), (101, 13))]
    targets = rng.integers(0, 101, 307)
    found = []
    for kind in ("cpu", "gpu"):
        with assume_device(kind):
            found.append(value_and_grad()(*map(jax.numpy.asarray, arrays), targets))
    (loss, gradients), (other, others) = found
    tolerance = 1e-2 if dtype == "bfloat16" else 1e-5
    np.testing.assert_allclose(loss, other, rtol=tolerance)
    for a, b in zip(gradients, others, strict=True):
        a, b = (np.asarray(x, "float32") for x in (a, b))
        np.testing.assert_allclose(a, b, atol=tolerance * np.abs(a).max())
