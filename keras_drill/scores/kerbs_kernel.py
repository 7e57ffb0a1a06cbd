import math

import keras
from keras import ops

from keras_drill.scores.inner_product import InnerProduct
from keras_drill.scores.score import Score

VARIANTS = ("paper", "reference")


@keras.saving.register_keras_serializable(package="keras_drill")
class KerBSKernel(Score):
    """The kernel of the kernelized Bayesian softmax, with one parameter θ per label.

        score(h, w) = |h| |w| f(cos(h, w))
        f(c) = -b/θ (exp(-θ c) - 1),    b = θ² / (2 (exp(-θ) + θ - 1))

    θ = 0 is the inner product. A larger θ gives a label a narrower kernel in `f'`, a negative θ a
    wider one. In the paper's notation `a = -b/θ`. The closed forms cancel near θ = 0; here they are
    computed with `expm1` and power series, so that value and derivatives keep the precision of
    their dtype from θ = 0 to θ = ±20.

    `variant="reference"` is the kernel of the authors' code: with `t = exp(τ(θ))`, τ the identity
    in [-4, 3] and squashed into (-5, 4) outside,

        f(c) = (exp(t c) - 1) / (2 ((exp(t) - 1) / t - 1))  for c > 1e-7,    f(c) = c  otherwise.

    A vector of zeros scores 0 and takes no gradient.

    Args:
        variant: "paper" or "reference".

    Raises:
        ValueError: `variant` is neither.

    Example:

    >>> kernel = keras_drill.scores.KerBSKernel()
    >>> [round(float(kernel.value(theta, 0.5)), 4) for theta in (0.0, 2.0, -2.0)]
    [0.5, 0.5568, 0.3918]

    Reference: [Miao et al., 2019](https://arxiv.org/abs/1911.00274), Eq. 9.
    """

    def __init__(self, variant: str = "paper"):
        if variant not in VARIANTS:
            raise ValueError(f"`variant` must be one of {VARIANTS}. Received: variant={variant!r}")
        self.variant = variant

    @property
    def parameter_initializers(self) -> dict:
        theta = 1e-8 if self.variant == "paper" else 0.0
        return {"theta": keras.initializers.Constant(theta)}

    def value(self, theta, cos):
        """`f`, the score of unit vectors: of broadcastable tensors θ and cosine."""
        theta, cos = _as_floats(theta, cos)
        return self._shape(theta).value(cos)

    def derivative_by_cos(self, theta, cos):
        """`∂f/∂cos`, shapes as in `value`."""
        theta, cos = _as_floats(theta, cos)
        return self._shape(theta).derivatives(cos)[0]

    def derivative_by_theta(self, theta, cos):
        """`∂f/∂θ`, shapes as in `value`."""
        theta, cos = _as_floats(theta, cos)
        return self._shape(theta).derivatives(cos)[2]

    def scores(self, hidden, labels, parameters):
        return self.forward(hidden, labels, parameters)[0]

    def forward(self, hidden, labels, parameters):
        products = InnerProduct().scores(hidden, labels, ())
        hidden_norm = self._norms(hidden, products.dtype)[:, None]
        label_norm = self._norms(labels, products.dtype)
        cos = products * _reciprocal(hidden_norm) * _reciprocal(label_norm)
        return hidden_norm * label_norm * self._shape(parameters[0]).value(cos), cos

    def gradients(self, derivative, row_weights, hidden, labels, parameters, residual):
        # With p = h·w and K = |h| |w| f(p / (|h| |w|)):
        #     ∂K/∂p = f',   ∂K/∂|h| = |w| (f - c f'),   ∂K/∂|w| = |h| (f - c f').
        by_cos, by_norm, by_theta = self._shape(parameters[0]).derivatives(residual)
        hidden_norm = self._norms(hidden, derivative.dtype)
        label_norm = self._norms(labels, derivative.dtype)
        d_hidden, d_labels, _ = InnerProduct().gradients(
            derivative * by_cos, row_weights, hidden, labels, (), None
        )
        by_norm = derivative * by_norm
        d_hidden_norm = row_weights * ops.einsum("rm,m->r", by_norm, label_norm)
        weighted_norm = row_weights * hidden_norm
        d_label_norm = ops.einsum("r,rm->m", weighted_norm, by_norm)
        d_theta = label_norm * ops.einsum("r,rm->m", weighted_norm, derivative * by_theta)
        by_direction = (d_hidden_norm * _reciprocal(hidden_norm))[:, None]
        d_hidden += by_direction * ops.cast(hidden, derivative.dtype)
        by_direction = (d_label_norm * _reciprocal(label_norm))[:, None]
        d_labels += by_direction * ops.cast(labels, derivative.dtype)
        return d_hidden, d_labels, (d_theta,)

    def pair_scores(self, hidden, labels, parameters):
        @ops.custom_gradient
        def scores(hidden, labels, theta):
            cos, hidden_norm, label_norm = self._pairs(hidden, labels)

            def gradient(*args, upstream=None):
                upstream = keras.tree.flatten(args if upstream is None else upstream)[0]
                *gradients, (d_theta,) = self.pair_gradients(upstream, hidden, labels, (theta,))
                inputs = (hidden, labels, theta)
                return tuple(
                    ops.cast(g, x.dtype) for g, x in zip((*gradients, d_theta), inputs, strict=True)
                )

            return hidden_norm * label_norm * self._shape(theta).value(cos), gradient

        return scores(hidden, labels, parameters[0])

    def pair_gradients(self, derivative, hidden, labels, parameters):
        cos, hidden_norm, label_norm = self._pairs(hidden, labels)
        by_cos, by_norm, by_theta = self._shape(parameters[0]).derivatives(cos)
        d_hidden, d_labels, _ = InnerProduct().pair_gradients(
            derivative * by_cos, hidden, labels, ()
        )
        by_norm = derivative * by_norm
        d_hidden_norm = ops.sum(by_norm * label_norm, axis=-1, keepdims=True)
        d_hidden += d_hidden_norm * _reciprocal(hidden_norm) * ops.cast(hidden, d_hidden.dtype)
        by_direction = (by_norm * hidden_norm * _reciprocal(label_norm))[..., None]
        d_labels += by_direction * ops.cast(labels, d_labels.dtype)
        return d_hidden, d_labels, (derivative * hidden_norm * label_norm * by_theta,)

    def _pairs(self, hidden, labels):
        """Cosines `[..., S]`, and the norms `[..., 1]` and `[..., S]`."""
        products = InnerProduct().pair_scores(hidden, labels, ())
        hidden_norm = self._norms(hidden, products.dtype)[..., None]
        label_norm = self._norms(labels, products.dtype)
        return (
            products * _reciprocal(hidden_norm) * _reciprocal(label_norm),
            hidden_norm,
            label_norm,
        )

    def get_config(self) -> dict:
        return {"variant": self.variant}

    def _shape(self, theta):
        return _PaperShape(theta) if self.variant == "paper" else _ReferenceShape(theta)

    def _norms(self, vectors, dtype):
        norms = ops.sqrt(ops.sum(ops.square(ops.cast(vectors, dtype)), axis=-1))
        return norms + 1e-7 if self.variant == "reference" else norms


class _PaperShape:
    """`f` and its derivatives for given θ."""

    def __init__(self, theta):
        # With this θ, exp(-θ c) - 1 is -θ c to the last bit, and b/θ still a number.
        self.theta = ops.where(ops.abs(theta) < 1e-20, ops.full_like(theta, 1e-20), theta)
        self.b, self.b_growth = _paper_scale(self.theta)

    def value(self, cos):
        return -self.b / self.theta * ops.expm1(-self.theta * cos)

    def derivatives(self, cos):
        """`f'`, `f - c f'` and `∂f/∂θ`."""
        x = self.theta * cos
        minus_1 = ops.expm1(-x)
        # (f - c f') / θ = b c² ψ(x)
        q = self.b * ops.square(cos) * _psi(x, minus_1)
        value = -self.b / self.theta * minus_1
        return self.b * (minus_1 + 1), self.theta * q, self.b_growth * value - q


class _ReferenceShape:
    """The authors' `f` and its derivatives for given raw θ."""

    def __init__(self, theta):
        low, high = ops.exp(4 + ops.minimum(theta, -4)), ops.exp(3 - ops.maximum(theta, 3))
        tau = ops.where(theta > 3, 4 - high, ops.where(theta < -4, low - 5, theta))
        self.slope = ops.where(theta > 3, high, ops.where(theta < -4, low, ops.ones_like(theta)))
        self.t = ops.exp(tau)
        # mean = (exp(t) - 1) / t - 1, and its derivative times t
        mean = ops.where(
            self.t < 1,
            _series(
                ops.minimum(self.t, 1.0), [0.0, *(1 / math.factorial(k) for k in range(2, 20))]
            ),
            ops.expm1(self.t) / self.t - 1,
        )
        self.scale = 1 / (2 * mean)
        self.growth = -(ops.exp(self.t) - mean - 1) / mean

    def value(self, cos):
        curved = self.scale * ops.expm1(self.t * ops.maximum(cos, 0.0))
        return ops.where(cos > 1e-7, curved, cos)

    def derivatives(self, cos):
        """`f'`, `f - c f'` and `∂f/∂θ`."""
        positive = cos > 1e-7
        minus_1 = ops.expm1(self.t * ops.maximum(cos, 0.0))
        value = self.scale * minus_1
        by_cos = self.scale * self.t * (minus_1 + 1)
        linear = cos * by_cos
        zero = ops.zeros_like(linear)
        return (
            ops.where(positive, by_cos, ops.ones_like(by_cos)),
            ops.where(positive, value - linear, zero),
            ops.where(positive, self.slope * (self.growth * value + linear), zero),
        )


def _paper_scale(theta):
    """`b(θ)` and `b'(θ) / b(θ)`, from `g = 1/b = 2 (exp(-θ) + θ - 1) / θ²`."""
    is_small = ops.abs(theta) < 1
    small = ops.where(is_small, theta, ops.zeros_like(theta))
    large = ops.where(is_small, ops.ones_like(theta), theta)
    minus_1 = ops.expm1(-large)
    g = ops.where(
        is_small,
        _series(-small, [2 / math.factorial(k + 2) for k in range(18)]),
        2 * (minus_1 + large) / ops.square(large),
    )
    d_g = ops.where(
        is_small,
        -_series(-small, [2 * (k + 1) / math.factorial(k + 3) for k in range(18)]),
        -2 * (large * (2 + minus_1) + 2 * minus_1) / large**3,
    )
    return 1 / g, -d_g / g


def _psi(x, minus_1):
    """`ψ(x) = -((exp(-x) - 1) (1 + x) + x) / x²`, given `exp(-x) - 1`."""
    terms = 14 if keras.backend.standardize_dtype(x.dtype) == "float64" else 9
    is_small = ops.abs(x) < 0.5
    divisor = ops.where(is_small, ops.ones_like(x), x)
    closed = -(minus_1 / divisor * (1 + x) + 1) / divisor
    series = _series(-x, [(k + 1) / math.factorial(k + 2) for k in range(terms)])
    return ops.where(is_small, series, closed)


def _series(x, coefficients):
    """`Σ_k coefficients[k] x^k`."""
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _reciprocal(norm):
    """`1 / norm`, and 0 for vectors of zeros, whose direction is none."""
    return ops.divide_no_nan(ops.ones_like(norm), norm)


def _as_floats(*arrays):
    return [
        x if ops.is_tensor(x) else ops.convert_to_tensor(x, dtype=keras.config.floatx())
        for x in arrays
    ]
