"""The functions `f` of the cosine in `KerBSKernel`, and their derivatives.

`KerBSKernel` has the equations. All functions are element-wise, for tensors that can be broadcast.
In comments, `c` is the cosine.
"""

import math

import keras
from keras import ops

from keras_drill.ops.device_kind import is_accelerator

# For smaller |θ|, power series replace closed forms, which would lose precision by cancellation.
SMALL_THETA = 0.5


class PaperShape:
    """The paper's `f` and functions for its gradients.

    `terms` computes everything that depends on θ alone, once for all cosines. The gradients need
    `num_shares` matrices in addition to f, which are called "shares".
    """

    num_shares = 1

    @staticmethod
    def terms(theta):
        # With a larger |θ| the slope may be infinite. Times a probability of 0 it would be NaN.
        theta = ops.clip(theta, -80.0, 80.0)
        b, growth = _paper_scale(theta)
        divisor = ops.where(ops.abs(theta) < SMALL_THETA, ops.ones_like(theta), theta)
        return theta, b, 1 / divisor, growth

    @staticmethod
    def value(cos, terms):
        theta, b, inverse, _ = terms
        x = theta * cos
        return b * ops.where(
            ops.abs(theta) < SMALL_THETA,
            cos * (1 - x * _remainder(-x)),
            (1 - ops.exp(-x)) * inverse,
        )

    @staticmethod
    def slope(cos, terms):
        """Returns the derivative `f'` with respect to the cosine."""
        theta, b, *_ = terms
        return b * ops.exp(-(theta * cos))  # the same exponential as in `value`

    @staticmethod
    def ratios(cos, terms):
        """Returns `q / f'` for the share q with `f - c f' = θ q`: (exp(θ c) - 1 - θ c) / θ²."""
        theta, _, inverse, _ = terms
        x = theta * cos
        small = ops.square(cos) * _remainder(x)
        # CPUs compute a quotient, so that `value`, `slope` and `ratios` share one exponential.
        growth = ops.exp(x) if is_accelerator() else 1 / ops.exp(-x)
        large = (growth - 1 - x) * ops.square(inverse)
        return (ops.where(ops.abs(theta) < SMALL_THETA, small, large),)

    @staticmethod
    def slack(terms):
        """Returns the factor with which the first share is `f - c f'`."""
        return terms[0]

    @staticmethod
    def by_theta(value, shares, terms):
        """Returns `∂f/∂θ = (b'/b) f - q`, or its sum if `value` and `shares` are sums."""
        return terms[3] * value - shares[0]


class ReferenceShape:
    """The `f` of the authors' code, with the methods of `PaperShape`."""

    num_shares = 2

    @staticmethod
    def terms(theta):
        low, high = ops.exp(4 + ops.minimum(theta, -4.0)), ops.exp(3 - ops.maximum(theta, 3.0))
        tau = ops.where(theta > 3, 4 - high, ops.where(theta < -4, low - 5, theta))
        slope = ops.where(theta > 3, high, ops.where(theta < -4, low, ops.ones_like(theta)))
        t = ops.exp(tau)
        # mean = (exp(t) - 1) / t - 1; growth = t scale' / scale
        coefficients = [0.0, *(1 / math.factorial(k) for k in range(2, 20))]
        small = _series(ops.minimum(t, 1.0), coefficients)
        mean = ops.where(t < 1, small, ops.expm1(t) / t - 1)
        growth = -(ops.exp(t) - mean - 1) / mean
        return t, 1 / (2 * mean), slope, growth

    @staticmethod
    def value(cos, terms):
        t, scale, _, _ = terms
        curved = scale * ops.expm1(t * ops.maximum(cos, 0.0))
        return ops.where(cos > 1e-7, curved, cos)

    @staticmethod
    def slope(cos, terms):
        """Returns the derivative `f'` with respect to the cosine."""
        t, scale, _, _ = terms
        curved = scale * t * ops.exp(t * ops.maximum(cos, 0.0))
        return ops.where(cos > 1e-7, curved, ops.ones_like(curved))

    @staticmethod
    def ratios(cos, terms):
        """Returns the shares `f - c f'` and `∂f/∂θ`, divided by the slope `f'`."""
        t, _, slope, growth = terms
        cos = ops.where(cos > 1e-7, cos, ops.zeros_like(cos))
        rise = -ops.expm1(-t * cos) / t  # f / f'
        return rise - cos, slope * (growth * rise + cos)

    @staticmethod
    def slack(terms):
        return 1.0

    @staticmethod
    def by_theta(value, shares, terms):
        return shares[1]


def _paper_scale(theta):
    """Returns `b(θ)` and `b'(θ) / b(θ)`, from `g = 1/b = 2 (exp(-θ) + θ - 1) / θ²`."""
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


def _remainder(x):
    """Returns `(exp(x) - 1 - x) / x²`, for |x| of at most `SMALL_THETA`."""
    terms = 15 if keras.backend.standardize_dtype(x.dtype) == "float64" else 7
    return _series(x, [1 / math.factorial(k + 2) for k in range(terms)])


def _series(x, coefficients):
    """Returns `Σ_k coefficients[k] x^k`."""
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total
