"""The inputs of a walk over tiles: its tensors, its options, and the resulting size of a tile."""

import math
from typing import Any, NamedTuple

from keras import ops

from keras_drill.fused_loss.divergences import ForwardKL
from keras_drill.fused_loss.placement import Placement
from keras_drill.fused_loss.tiling import bytes_per_score, default_tile_bytes
from keras_drill.scores.score import Score
from keras_drill.types import Tensor


class WordLabels(NamedTuple):
    """The labels of each word, if words have several labels or another order than the labels.

    Attributes:
        columns: `[V, S]` integers, the labels whose probabilities sum to the word's probability.
        mask: `[V, S]` booleans, true for valid columns.
        words: `[M]` integers, the word of each label.
    """

    columns: Tensor
    mask: Tensor
    words: Tensor


class StoredTeacher(NamedTuple):
    """Probabilities of some words for every token, stored from a teacher beforehand.

    Attributes:
        words: `[N, S]` integers.
        probabilities: `[N, S]`, at the temperature of the distillation. If a word occurs twice,
            its probabilities are summed.
    """

    words: Tensor
    probabilities: Tensor


class WalkInputs(NamedTuple):
    """The tensors from which the fused loss is computed.

    Shape letters:

    - N: number of tokens.
    - M: number of labels (output embeddings).
    - K: number of hidden states per token that a mixture combines, or 1.
    - S: largest number of labels of a target word.

    Attributes:
        contexts: `[N, K, d]`, the hidden states: one per token (softmax, KerBS) or K (mixtures).
        log_priors: `[N, K]`, or `None` if K = 1.
        labels: `[M, d]`.
        bias: `[M]`, or `None`.
        score_parameters: Tuple of tensors whose first axis is M (the kernel's theta).
        columns: `[N, S]` integers, indices of the labels of the target word. Their probabilities
            sum to the target's probability.
        column_mask: `[N, S]` booleans, true for valid columns, or `None` if all are valid.
        targets: `[N]` integers, the target words; `None` if `word_labels` is `None`.
        word_labels: `WordLabels`, or `None` if label j is the only label of word j.
        teacher: The constant `WalkInputs` or `StoredTeacher` for distillation (see
            `WalkOptions.distillation`), or `None`.
    """

    contexts: Tensor
    log_priors: Tensor | None
    labels: Tensor
    bias: Tensor | None
    score_parameters: tuple
    columns: Tensor
    column_mask: Tensor | None = None
    targets: Tensor | None = None
    word_labels: WordLabels | None = None
    teacher: Any = None

    @property
    def words_are_scores(self) -> bool:
        """Whether each word has one score, so that score - normaliser is its log-probability."""
        return self.word_labels is None and self.contexts.shape[1] == 1


class Distillation(NamedTuple):
    """Options of distillation: a student learns from a teacher, and optionally from targets.

        cross_entropy_weight * CE + (1 - cross_entropy_weight) * temperature^2 * divergence

    Attributes:
        divergence: A divergence of the module `divergences`, such as `ForwardKL()`.
        temperature: Divides the logits of student and teacher in the divergence.
        cross_entropy_weight: Weight of the targets' loss.
        teacher: `WalkOptions` of the teacher, if the teacher is `WalkInputs`.
    """

    divergence: Any = ForwardKL()
    temperature: float = 1.0
    cross_entropy_weight: float = 0.0
    teacher: Any = None

    def mix(self, of_targets, of_teacher, power: int):
        """Returns the weighted sum of two losses, or of their derivatives with respect to logits.

        Args:
            of_targets: The targets' part, or `None` if its weight is 0.
            of_teacher: The divergence's part.
            power: Power of the temperature: 2 for losses, 1 for derivatives.
        """
        of_teacher = (1 - self.cross_entropy_weight) * self.temperature**power * of_teacher
        if not self.cross_entropy_weight:
            return of_teacher
        return self.cross_entropy_weight * of_targets + of_teacher


class WalkOptions(NamedTuple):
    """The options of a walk.

    Attributes:
        score: The `keras_drill.scores.Score` that compares contexts with labels.
        compute_dtype: Dtype of the matrix products. All other results are in `accumulator_dtype`.
        label_smoothing: Share of the target's probability that is distributed over all words.
        logit_soft_cap: `c` in `c * tanh(scores / c)`, or `None`.
        z_loss: Coefficient of the squared log-normaliser.
        tile_size: Tokens per tile, or `None` to derive it from `tile_bytes`.
        tile_bytes: Memory limit for one tile of scores, in bytes. In distillation, this includes
            the teacher's log-probabilities.
        with_ranks: Whether to count the words that are more probable than the target.
        labels_are_frozen: Whether the gradient of the labels is not needed and the score has no
            parameters.
        placement: Partition of labels and tokens over devices, or `None` for one device.
        distillation: `Distillation`, or `None` without a teacher.
    """

    score: Score
    compute_dtype: str = "float32"
    label_smoothing: float = 0.0
    logit_soft_cap: float | None = None
    z_loss: float = 0.0
    tile_size: int | None = None
    tile_bytes: int | None = None
    with_ranks: bool = False
    labels_are_frozen: bool = False
    placement: Placement | None = None
    distillation: Distillation | None = None

    @property
    def accumulator_dtype(self) -> str:
        return "float64" if self.compute_dtype == "float64" else "float32"

    def keeps_exponentials(self, inputs: WalkInputs) -> bool:
        """Returns whether the derivative of a row is a multiple of its exponentials.

        The targets, and a term that is equal for all labels, may be exceptions. If the result is
        true, a tile holds exp(scores) instead of the products, and is read only once. With a soft
        cap, the entries are multiplied by its slope. Float16 cannot hold sums of such large
        exponentials, so the result is false for float16.
        """
        is_even = not self.label_smoothing or (
            self.logit_soft_cap is None and inputs.words_are_scores
        )
        is_one_multiple = is_even and self.distillation is None
        return self.score.is_linear and is_one_multiple and self.compute_dtype != "float16"

    def adds_up_at_once(self, inputs: WalkInputs) -> bool:
        """Returns whether the first pass can accumulate the gradient of the contexts.

        This requires that nothing needs sums over rows, which depend on the normalisers of all
        labels, and that nothing else needs the scores.
        """
        is_wanted_alone = self.labels_are_frozen and inputs.bias is None and not self.with_ranks
        return is_wanted_alone and self.keeps_exponentials(inputs)


def tokens_per_tile(num_contexts: int, num_labels: int, options: WalkOptions) -> int:
    """Returns the largest number of tokens in a tile."""
    if options.tile_size is not None:
        return options.tile_size
    tile_bytes = options.tile_bytes or default_tile_bytes(0)
    per_token = bytes_per_score(options.compute_dtype) * num_contexts * num_labels
    if options.distillation is not None:
        per_token *= 2  # the teacher's log-probabilities
    return max(1, tile_bytes // per_token)


def tile_count(num_tokens, num_contexts: int, num_labels: int, options: WalkOptions):
    """Returns the number of tiles for `num_tokens` tokens (an int or a scalar tensor)."""
    size = tokens_per_tile(num_contexts, num_labels, options)
    if isinstance(num_tokens, int):
        return max(1, math.ceil(num_tokens / size))
    return ops.maximum(1, (num_tokens + size - 1) // size)
