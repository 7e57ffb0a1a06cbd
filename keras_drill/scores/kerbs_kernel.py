import keras
from keras import ops

from keras_drill.ops.graph import vector_product
from keras_drill.scores.inner_product import InnerProduct
from keras_drill.scores.kernel_shapes import PaperShape, ReferenceShape
from keras_drill.scores.score import Score
from keras_drill.types import Initializer, Tensor, Tensors

VARIANTS = ("paper", "reference")


@keras.saving.register_keras_serializable(package="keras_drill")
class KerBSKernel(Score):
    """The kernel of the kernelized Bayesian softmax, with one trainable parameter θ per label.

        score(h, w) = |h| |w| f(cos(h, w))
        f(c) = -b/θ (exp(-θ c) - 1),    b = θ² / (2 (exp(-θ) + θ - 1))

    h is a context (hidden state), w a label (output embedding), and c the cosine of both. With
    θ = 0 the kernel is the inner product. A label with a larger θ has a wider kernel: f(0.5) / f(1)
    is 0.27 for θ = -2, 0.5 for θ = 0 and 0.73 for θ = 2. In the paper's notation `a = -b/θ`.

    Pass the kernel to `keras_drill.OutputLayer` as `score`, or use
    `keras_drill.KernelizedBayesianSoftmax`. The output layer, or its tied embedding, stores θ,
    which starts near 0.

    Near θ = 0 the closed forms lose precision by cancellation, so a power series replaces them for
    small θ. Values and gradients therefore have the precision of their dtype from θ = -20 to 20. A
    θ beyond ±80 is clipped to ±80, because exp(θ) would come near the largest float32.

    `variant="reference"` is the kernel of the authors' code. Let `t = exp(τ(θ))`, where τ is the
    identity in [-4, 3] and maps other θ into (-5, 4). Then

        f(c) = (exp(t c) - 1) / (2 ((exp(t) - 1) / t - 1))  for c > 1e-7,    f(c) = c  otherwise.

    For a vector of zeros, both variants set c = 0, and the score is 0.

    Args:
        variant: "paper" or "reference", see above.

    Raises:
        ValueError: `variant` is neither "paper" nor "reference".

    Example:

    >>> kernel = keras_drill.scores.KerBSKernel()
    >>> [round(float(kernel.value(theta, 0.5)), 4) for theta in (0.0, 2.0, -2.0)]
    [0.5, 0.5568, 0.3915]

    Reference: [Miao et al., 2019](https://arxiv.org/abs/1911.00274), Eq. 9.
    """

    def __init__(self, variant: str = "paper"):
        if variant not in VARIANTS:
            raise ValueError(f"`variant` must be one of {VARIANTS}. Received: variant={variant!r}")
        self.variant = variant

    @property
    def parameter_initializers(self) -> dict[str, Initializer]:
        theta = 1e-8 if self.variant == "paper" else 0.0
        return {"theta": keras.initializers.Constant(theta)}

    def value(self, theta: Tensor, cos: Tensor) -> Tensor:
        """Computes `f(cos)`, which is the score if context and label have norm 1.

        Args:
            theta: Floats, θ of labels.
            cos: Floats, cosines of contexts and labels. `theta` and `cos` are broadcast.

        Returns:
            Floats of the common shape of `theta` and `cos`.
        """
        theta, cos = _as_floats(theta, cos)
        return self._shape.value(cos, self._shape.terms(theta))

    def derivative_by_cos(self, theta: Tensor, cos: Tensor) -> Tensor:
        """Computes `∂f/∂cos`. Arguments and shape of the result are those of `value`."""
        theta, cos = _as_floats(theta, cos)
        return self._shape.slope(cos, self._shape.terms(theta))

    def derivative_by_theta(self, theta: Tensor, cos: Tensor) -> Tensor:
        """Computes `∂f/∂θ`. Arguments and shape of the result are those of `value`."""
        theta, cos = _as_floats(theta, cos)
        terms = self._shape.terms(theta)
        return self._shape.by_theta(self._shape.value(cos, terms), self._shares(cos, terms), terms)

    @property
    def num_label_sums(self) -> int:
        return self._shape.num_shares

    def hidden_terms(self, hidden: Tensor) -> Tensors:
        return tuple(x[:, None] for x in self._norms(hidden))

    def label_terms(self, labels: Tensor, parameters: Tensors) -> Tensors:
        return *self._norms(labels), *self._shape.terms(parameters[0])

    def of_products(self, products: Tensor, hidden_terms: Tensors, label_terms: Tensors) -> Tensor:
        (norm, _, inverse), (label_norm, _, label_inverse, *terms) = hidden_terms, label_terms
        cos = products * inverse * label_inverse
        return norm * label_norm * self._shape.value(cos, terms)

    def product_gradients(
        self,
        derivative: Tensor,
        row_weights: Tensor,
        products: Tensor,
        hidden_terms: Tensors,
        label_terms: Tensors,
    ) -> tuple[Tensor, Tensors, Tensors]:
        # With p = h·w and K = |h| |w| f(p / (|h| |w|)):
        #     ∂K/∂p = f',   ∂K/∂|h| = |w| (f - c f'),   ∂K/∂|w| = |h| (f - c f').
        # `shares` are matrices: times factors of each label, they give the last two and ∂K/∂θ.
        (_, _, inverse), (_, _, label_inverse, *terms) = hidden_terms, label_terms
        cos = products * inverse * label_inverse
        by_products = derivative * self._shape.slope(cos, terms)
        return by_products, *self._sums(cos, by_products, row_weights, hidden_terms, label_terms)

    def product_sums(
        self,
        by_products: Tensor,
        row_weights: Tensor,
        products: Tensor,
        hidden_terms: Tensors,
        label_terms: Tensors,
    ) -> tuple[Tensors, Tensors]:
        cos = products * hidden_terms[2] * label_terms[2]
        return self._sums(cos, by_products, row_weights, hidden_terms, label_terms)

    def _sums(self, cos, by_products, row_weights, hidden_terms, label_terms):
        (norm, _, _), (label_norm, _, _, *terms) = hidden_terms, label_terms
        # All shares are multiples of `by_products`, which is stored anyway and read once for each.
        shares = [by_products * ratio for ratio in self._shape.ratios(cos, terms)]
        weighted_norm = row_weights * norm[:, 0]
        hidden_sum = vector_product(shares[0], label_norm * self._shape.slack(terms))
        return (hidden_sum,), tuple(vector_product(weighted_norm, share) for share in shares)

    def hidden_gradients(
        self, gradient: Tensor, hidden_sums: Tensors, hidden: Tensor, hidden_terms: Tensors
    ) -> Tensor:
        _, direction, _ = hidden_terms
        return gradient + (hidden_sums[0][:, None] * direction) * ops.cast(hidden, gradient.dtype)

    def label_gradients(
        self, gradient: Tensor, label_sums: Tensors, labels: Tensor, label_terms: Tensors
    ) -> tuple[Tensor | None, Tensors]:
        norm, direction, inverse, *terms = label_terms
        labels = ops.cast(labels, gradient.dtype)
        # Sums over rows of |h| (f - c f') and of |h| c f': a row's part of `gradient` is f' h.
        slack = self._shape.slack(terms) * label_sums[0]
        linear = inverse * ops.sum(gradient * labels, axis=-1)
        d_theta = norm * self._shape.by_theta(linear + slack, label_sums, terms)
        along = slack * direction
        return along[:, None] * labels, (d_theta,)

    def scores(self, hidden: Tensor, labels: Tensor, parameters: Tensors) -> Tensor:
        # Automatic differentiation of the closed form has no precision near θ = 0.
        @ops.custom_gradient
        def scores(hidden, labels, theta):
            terms = self.hidden_terms(hidden), self.label_terms(labels, (theta,))
            products = InnerProduct().scores(hidden, labels, ())

            def gradient(*args, upstream=None):
                upstream = keras.tree.flatten(args if upstream is None else upstream)[0]
                ones = ops.ones_like(upstream[:, 0])
                derivative, hidden_sums, label_sums = self.product_gradients(
                    upstream, ones, products, *terms
                )
                low = ops.cast(derivative, hidden.dtype)
                d_hidden = ops.cast(ops.matmul(low, labels), derivative.dtype)
                d_labels = ops.cast(ops.matmul(ops.transpose(low), hidden), derivative.dtype)
                d_hidden = self.hidden_gradients(d_hidden, hidden_sums, hidden, terms[0])
                more, (d_theta,) = self.label_gradients(d_labels, label_sums, labels, terms[1])
                d_labels = d_labels + more
                return _cast_like((d_hidden, d_labels, d_theta), (hidden, labels, theta))

            return self.of_products(products, *terms), gradient

        return scores(hidden, labels, *parameters)

    def pair_scores(self, hidden: Tensor, labels: Tensor, parameters: Tensors) -> Tensor:
        @ops.custom_gradient
        def scores(hidden, labels, theta):
            cos, (norm, *_), (label_norm, *_) = self._pairs(hidden, labels)
            value = self._shape.value(cos, self._shape.terms(theta))

            def gradient(*args, upstream=None):
                upstream = keras.tree.flatten(args if upstream is None else upstream)[0]
                *gradients, (d_theta,) = self.pair_gradients(upstream, hidden, labels, (theta,))
                return _cast_like((*gradients, d_theta), (hidden, labels, theta))

            return norm * label_norm * value, gradient

        return scores(hidden, labels, *parameters)

    def pair_gradients(
        self, derivative: Tensor, hidden: Tensor, labels: Tensor, parameters: Tensors
    ) -> tuple[Tensor, Tensor, Tensors]:
        cos, (norm, direction, _), (label_norm, label_direction, _) = self._pairs(hidden, labels)
        terms = self._shape.terms(parameters[0])
        shares = self._shares(cos, terms)
        d_hidden, d_labels, _ = InnerProduct().pair_gradients(
            derivative * self._shape.slope(cos, terms), hidden, labels, ()
        )
        by_norm = derivative * self._shape.slack(terms) * shares[0]
        d_norm = ops.sum(by_norm * label_norm, axis=-1, keepdims=True)
        d_hidden += d_norm * direction * ops.cast(hidden, d_hidden.dtype)
        d_labels += (by_norm * norm * label_direction)[..., None] * ops.cast(labels, d_labels.dtype)
        by_theta = self._shape.by_theta(self._shape.value(cos, terms), shares, terms)
        return d_hidden, d_labels, (derivative * norm * label_norm * by_theta,)

    def _pairs(self, hidden, labels):
        """Returns cosines `[..., S]`, and the results of `_norms` for hidden states and labels."""
        products = InnerProduct().pair_scores(hidden, labels, ())
        norms = tuple(x[..., None] for x in self._norms(hidden))
        label_norms = self._norms(labels)
        return products * norms[2] * label_norms[2], norms, label_norms

    def get_config(self) -> dict:
        return {"variant": self.variant}

    @property
    def _shape(self) -> type[PaperShape] | type[ReferenceShape]:
        return PaperShape if self.variant == "paper" else ReferenceShape

    def _shares(self, cos, terms):
        """Returns matrices from which `∂f/∂θ` and `f - c f'` follow by factors of the labels."""
        slope = self._shape.slope(cos, terms)
        return [slope * ratio for ratio in self._shape.ratios(cos, terms)]

    def _norms(self, vectors):
        """Returns the norms that the kernel uses, 1 / the true norms, and 1 / the kernel's norms.

        The "reference" variant adds 1e-7 to the true norms.
        """
        is_double = keras.backend.standardize_dtype(vectors.dtype) == "float64"
        vectors = ops.cast(vectors, "float64" if is_double else "float32")
        norms = ops.sqrt(ops.sum(ops.square(vectors), axis=-1))
        # Vectors of zeros have no direction: their cosine and score are 0.
        directions = ops.divide_no_nan(ops.ones_like(norms), norms)
        if self.variant == "paper":
            return norms, directions, directions
        return norms + 1e-7, directions, 1 / (norms + 1e-7)


def _cast_like(gradients, inputs):
    return tuple(ops.cast(g, x.dtype) for g, x in zip(gradients, inputs, strict=True))


def _as_floats(*arrays):
    return [
        x if ops.is_tensor(x) else ops.convert_to_tensor(x, dtype=keras.config.floatx())
        for x in arrays
    ]
