"""The KerBS kernel against its definition in float64, and what it promises everywhere."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.fused_loss import label_blocks, tiling
from keras_drill.fused_loss import walk as tile_walk
from keras_drill.fused_loss.inputs import WalkInputs, WalkOptions
from keras_drill.fused_loss.losses import weighted_loss
from keras_drill.scores import InnerProduct, KerBSKernel
from tests.gradients import value_and_gradients

N, M, D, S = 11, 37, 13, 4
SIZES = (1e-12, 1e-6, 0.01, 0.3, 0.5, 1, 2.7, 20)  # at 0.5 and 1 closed forms replace series
THETAS = [0.0] + [sign * size for size in SIZES for sign in (1, -1)]
COSINES = np.linspace(-1, 1, 41)
NAMES = ("contexts", "log_priors", "labels", "bias", "theta")


def shape(variant, theta, cos):
    """The definition, exact enough in float64 where |θ| is at least 0.01."""
    if variant == "paper":
        a = -theta / (2 * (np.exp(-theta) + theta - 1))
        return a * (np.exp(-theta * cos) - 1)
    tau = np.where(theta > 3, 4 - np.exp(3 - theta), theta)
    tau = np.where(theta < -4, -5 + np.exp(4 + np.minimum(theta, 0)), tau)
    t = np.exp(tau)
    a = 1 / (4 * ((np.exp(t) - 1) / t - 1))
    return np.where(cos > 1e-7, 2 * a * (np.exp(t * cos) - 1), cos)


def kernel_scores(variant, hidden, labels, theta):
    epsilon = 1e-7 if variant == "reference" else 0.0
    hidden_norm = np.linalg.norm(hidden, axis=-1)[..., None] + epsilon
    norms = hidden_norm * (np.linalg.norm(labels, axis=-1) + epsilon)
    return norms * shape(variant, theta, hidden @ labels.T / norms)


def make_case(num_contexts=1):
    rng = np.random.default_rng(num_contexts)
    columns = np.stack([rng.choice(M, S, replace=False) for _ in range(N)])
    mask = rng.random((N, S)) < 0.6
    mask[:, 0] = True
    return {
        "contexts": rng.normal(size=(N, num_contexts, D)),
        "log_priors": np.log(rng.dirichlet(np.ones(num_contexts), N)),
        "labels": rng.normal(size=(M, D)),
        "bias": rng.normal(size=M),
        "theta": rng.choice([-1, 1], M) * rng.uniform(0.05, 3, M),
        "weights": np.where(np.arange(N) % 5 == 3, 0, rng.random(N)),
        "columns": np.where(mask, columns, 0),  # 0 is also the true column of some
        "mask": mask,
    }


def oracle(case, variant, logit_soft_cap=None, z_loss=0.0):
    """Weighted loss in float64, from the whole matrix of scores, and the posteriors."""
    scores = kernel_scores(variant, case["contexts"], case["labels"], case["theta"]) + case["bias"]
    if logit_soft_cap is not None:
        scores = logit_soft_cap * np.tanh(scores / logit_soft_cap)
    normalizer = np.log(np.exp(scores).sum(-1, keepdims=True))
    log_probs = scores - normalizer + case["log_priors"][..., None]  # [N, K, M]
    columns = np.broadcast_to(case["columns"][:, None], (N, log_probs.shape[1], S))
    joint = np.exp(np.take_along_axis(log_probs, columns, -1)) * case["mask"][:, None]
    word = joint.sum((1, 2))
    losses = -np.log(word) + z_loss * np.square(normalizer[..., 0]).mean(-1)
    return case["weights"] @ losses, joint.sum(1) / word[:, None] * (case["weights"] != 0)[:, None]


def results(case, variant, tensors, dtype, **options):
    contexts, log_priors, labels, bias, theta = tensors
    if case["contexts"].shape[1] == 1:
        log_priors = None
    inputs = WalkInputs(contexts, log_priors, labels, bias, (theta,), case["columns"], case["mask"])
    options = WalkOptions(KerBSKernel(variant), compute_dtype=dtype, tile_size=4, **options)
    return weighted_loss(inputs, options, ops.convert_to_tensor(case["weights"], "float32"))


def loss_and_gradients(case, variant, dtype="float32", **options):
    """The fused loss, and its gradients for those of `NAMES` that take part."""
    one = case["contexts"].shape[1] == 1
    names = [name for name in NAMES if name != "log_priors" or not one]

    def loss(*tensors):
        given = dict(zip(names, tensors, strict=True))
        return results(case, variant, [given.get(name) for name in NAMES], dtype, **options)[0]

    arrays = [case[name].astype("float32") for name in names]
    value, _, *gradients = value_and_gradients(loss, [], *arrays)
    return value, dict(zip(names, gradients, strict=True))


@pytest.mark.parametrize("variant", ["paper", "reference"])
def test_value_and_derivatives_are_those_of_the_definition(variant):
    theta, cos = np.meshgrid([x for x in THETAS if abs(x) > 1e-3], COSINES[COSINES != 0])
    kernel = KerBSKernel(variant)
    expected = {
        "value": shape(variant, theta, cos),
        "derivative_by_cos": slope(lambda x: shape(variant, theta, x), cos),
        "derivative_by_theta": slope(lambda x: shape(variant, x, cos), theta),
    }
    for name, numbers in expected.items():
        actual = np.asarray(getattr(kernel, name)(theta.astype("f"), cos.astype("f")), "float64")
        size = np.maximum(1, np.abs(numbers))
        # The reference's t reaches 54, whose rounding alone moves exp(t) by 3e-6.
        atol = 5e-6 if variant == "paper" else 2e-5
        np.testing.assert_allclose(actual / size, numbers / size, rtol=0, atol=atol)


@pytest.mark.parametrize("variant", ["paper", "reference"])
def test_norms_are_exact_in_float64(variant):
    """The variants differ by 1e-7 in each norm, which float32 cannot tell."""
    random = np.random.default_rng(0)
    hidden, labels = random.normal(size=(N, D)), random.normal(size=(M, D))
    theta = np.full(M, -1.5)
    tensors = [ops.convert_to_tensor(x, dtype="float64") for x in (hidden, labels, theta)]
    scores = KerBSKernel(variant).scores(*tensors[:2], (tensors[2],))
    expected = kernel_scores(variant, hidden, labels, theta)
    np.testing.assert_allclose(np.asarray(scores), expected, rtol=1e-11, atol=1e-11)


def slope(function, x):
    """Derivative by Richardson extrapolation of central differences."""
    differences = [(function(x + h) - function(x - h)) / (2 * h) for h in (2e-4, 1e-4)]
    return (4 * differences[1] - differences[0]) / 3


@pytest.mark.parametrize("theta", THETAS)
def test_the_papers_kernel_keeps_its_shape(theta):
    """0 at right angles, rising everywhere, and as steep there as `b`, which is 1 at θ = 0."""
    kernel = KerBSKernel()
    cosines = COSINES.astype("float32")
    values = np.asarray(kernel.value(theta, cosines))
    slopes = np.asarray(kernel.derivative_by_cos(theta, cosines))
    assert values[20] == 0
    assert (slopes >= 0).all() and (np.diff(values) >= 0).all()
    assert slopes[20] > 0
    if abs(theta) < 1e-5:
        np.testing.assert_allclose(values, cosines, rtol=1e-5)
        by_theta = cosines / 3 - np.square(cosines) / 2
        np.testing.assert_allclose(
            kernel.derivative_by_theta(theta, cosines), by_theta, rtol=1e-4, atol=1e-6
        )


@pytest.mark.parametrize("variant", ["paper", "reference"])
@pytest.mark.parametrize("num_contexts", [1, 3])
@pytest.mark.parametrize("options", [{}, {"logit_soft_cap": 3.0, "z_loss": 0.1}], ids=str)
def test_senses_and_mixtures_match_finite_differences(variant, num_contexts, options):
    case = make_case(num_contexts)
    value, gradients = loss_and_gradients(case, variant, **options)
    np.testing.assert_allclose(value, oracle(case, variant, **options)[0], rtol=1e-5)
    tensors = [ops.convert_to_tensor(case[name].astype("float32")) for name in NAMES]
    _, log_probs, posteriors, _ = results(case, variant, tensors, "float32", **options)
    np.testing.assert_allclose(posteriors, oracle(case, variant, **options)[1], atol=1e-5)
    assert not np.asarray(log_probs)[case["weights"] == 0].any()
    rng = np.random.default_rng(2)
    for name, gradient in gradients.items():
        expected = []
        flat = rng.choice(gradient.size, min(gradient.size, 29), replace=False)
        entries = [np.unravel_index(i, gradient.shape) for i in flat]
        for entry in entries:
            kept = case[name][entry]
            ends = []
            for end in (kept + 1e-5, kept - 1e-5):
                case[name][entry] = end
                ends.append(oracle(case, variant, **options)[0])
            case[name][entry] = kept
            expected.append((ends[0] - ends[1]) / 2e-5)
        actual = [gradient[entry] for entry in entries]
        np.testing.assert_allclose(actual, expected, atol=2e-5 * np.abs(gradient).max())


@pytest.mark.parametrize("variant", ["paper", "reference"])
def test_pairs_match_finite_differences(variant):
    """`pair_scores`, and its derivatives by hidden, labels and θ."""
    rng = np.random.default_rng(4)
    arrays = [rng.normal(size=(N, D)), rng.normal(size=(N, S, D)), rng.uniform(0.2, 3, (N, S))]
    arrays[2][::2] *= -1
    upstream = rng.normal(size=(N, S))

    def definition(hidden, labels, theta):
        return np.stack([
            kernel_scores(variant, hidden[n], labels[n], theta[n]) for n in range(N)
        ])  # fmt: skip

    def weighted(hidden, labels, theta):
        scores = KerBSKernel(variant).pair_scores(hidden, labels, (theta,))
        return ops.sum(ops.convert_to_tensor(upstream, "float32") * scores)

    given = [array.astype("float32") for array in arrays]
    scores = KerBSKernel(variant).pair_scores(*map(ops.convert_to_tensor, given[:2]), (given[2],))
    np.testing.assert_allclose(scores, definition(*arrays), rtol=1e-4, atol=1e-5)
    _, _, *gradients = value_and_gradients(weighted, [], *given)
    for which, gradient in enumerate(gradients):
        expected = np.zeros_like(arrays[which])
        for entry in np.ndindex(expected.shape):

            def moved(x, entry=entry, which=which):
                changed = [array.copy() for array in arrays]
                changed[which][entry] = x
                return (upstream * definition(*changed)).sum()

            expected[entry] = slope(moved, arrays[which][entry])
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("variant", ["paper", "reference"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_everything_is_finite_everywhere(variant, dtype):
    """Every θ, vectors that are equal, opposite, zero, tiny, and targets of cosine -1."""
    rng = np.random.default_rng(0)
    case = make_case()
    case["theta"] = np.resize(THETAS, M)
    case["contexts"][:5, 0] = case["labels"][:5]
    case["contexts"][5:8, 0] = -case["labels"][5:8]
    case["contexts"][8], case["labels"][8], case["labels"][9] = 0, 0, 1e-25
    case["columns"] = np.concatenate([np.arange(N)[:, None], rng.integers(0, M, (N, S - 1))], 1)
    case["weights"][:] = 1
    value, gradients = loss_and_gradients(case, variant, dtype)
    assert np.isfinite(value)
    for name, gradient in gradients.items():
        assert np.isfinite(gradient).all(), name


@pytest.mark.parametrize("dtype, tolerance", [("bfloat16", 3e-2), ("float16", 4e-3)])
def test_half_precision_is_near_to_single(dtype, tolerance):
    case = make_case()
    expected_value, expected = loss_and_gradients(case, "paper")
    value, gradients = loss_and_gradients(case, "paper", dtype)
    np.testing.assert_allclose(value, expected_value, rtol=tolerance)
    for name, gradient in gradients.items():
        atol = tolerance * np.abs(expected[name]).max()
        np.testing.assert_allclose(gradient, expected[name], atol=atol)


def test_theta_near_0_is_the_inner_product():
    case = make_case()
    hidden, labels = (case[name].astype("float32") for name in ("contexts", "labels"))
    expected = InnerProduct().scores(*map(ops.convert_to_tensor, (hidden[:, 0], labels)), ())
    for theta in (0.0, 1e-12, -1e-8):
        scores = KerBSKernel().scores(
            *map(ops.convert_to_tensor, (hidden[:, 0], labels)), (np.full(M, theta, "float32"),)
        )
        np.testing.assert_allclose(scores, expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's compilers")
@pytest.mark.parametrize("jit_compile", [False, True])
def test_compiled_parts_change_nothing(jit_compile, monkeypatch):
    import tensorflow as tf

    case = make_case(3)
    expected_value, expected = loss_and_gradients(case, "paper", z_loss=0.1)
    monkeypatch.setattr(tile_walk, "FUSE_FROM_SCORES", 0)
    monkeypatch.setattr(tiling, "LABEL_BLOCK_BYTES", 4 * 13 * D)  # blocks of 16, 16 and 5
    monkeypatch.setattr(label_blocks.MatrixSum, "rows_per_chunk", 4)
    traces = []

    @tf.function(
        jit_compile=jit_compile,
        input_signature=[tf.TensorSpec([None, *case["contexts"].shape[1:]])],
    )
    def compiled(contexts):
        traces.append(1)
        variables = [tf.constant(case[name], tf.float32) for name in NAMES[1:]]
        with tf.GradientTape() as tape:
            tape.watch([contexts, *variables])
            tensors = [contexts, *variables]
            value = results(case, "paper", tensors, "float32", z_loss=0.1)[0]
        return value, *tape.gradient(value, [contexts, *variables])

    for _ in range(2):
        value, *gradients = compiled(case["contexts"].astype("float32"))
    np.testing.assert_allclose(value, expected_value, rtol=1e-5)
    for name, gradient in zip(NAMES, gradients, strict=True):
        atol = 1e-5 * np.abs(expected[name]).max()
        np.testing.assert_allclose(gradient, expected[name], atol=atol)
    assert len(traces) == 1


@pytest.mark.parametrize("theta", [150.0, -150.0])
def test_a_theta_that_ran_away_makes_no_nan(theta):
    case = make_case()
    case["theta"][::2] = theta
    value, gradients = loss_and_gradients(case, "paper")
    assert np.isfinite(value)
    for name, gradient in gradients.items():
        assert np.isfinite(gradient).all(), name


def test_config_and_errors():
    kernel = KerBSKernel("reference")
    assert KerBSKernel.from_config(kernel.get_config()).variant == "reference"
    assert float(kernel.parameter_initializers["theta"](())) == 0
    with pytest.raises(ValueError, match=r"`variant` must be one of .* Received: variant='other'"):
        KerBSKernel("other")
