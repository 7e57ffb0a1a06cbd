"""What a walk over tiles is given: its tensors, its options, and how large those make a tile."""

import math
from typing import Any, NamedTuple

from keras import ops

from keras_drill.fused_loss.divergences import ForwardKL
from keras_drill.fused_loss.placement import Placement
from keras_drill.fused_loss.tiling import bytes_per_score, default_tile_bytes
from keras_drill.scores.score import Score
from keras_drill.types import Tensor


class WordLabels(NamedTuple):
    """The labels of every word, where these are not one label a word in the words' order.

    Attributes:
        columns: `[V, S]` integers, the labels whose probabilities add up to a word's.
        mask: `[V, S]` booleans, the columns that count.
        words: `[M]` integers, the word of every label.
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
    """The tensors of a walk. Shape letters: see `tile_walk`.

    Attributes:
        contexts: `[N, K, d]`, one context per token (softmax, KerBS) or K (mixtures).
        log_priors: `[N, K]`, or `None` where K = 1.
        labels: `[M, d]`.
        bias: `[M]`, or `None`.
        score_parameters: Tuple of tensors whose first axis is M (the kernel's theta).
        columns: `[N, S]` integers, the labels whose probabilities add up to the target's.
        column_mask: `[N, S]` booleans, or `None` where all columns count.
        targets: `[N]` integers, the target words; `None` where `word_labels` is.
        word_labels: `WordLabels`, or `None` where label j is the only one of word j.
        teacher: The constant `WalkInputs` or `StoredTeacher` that the labels' words are distilled
            from, with `WalkOptions.distillation`; or `None`.
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
        """Whether every word has one score, so that its log-probability is that but for a sum."""
        return self.word_labels is None and self.contexts.shape[1] == 1


class Distillation(NamedTuple):
    """How a student learns from a teacher, beside or instead of targets.

        cross_entropy_weight CE + (1 - cross_entropy_weight) temperature^2 divergence

    Attributes:
        divergence: One of `divergences`.
        temperature: Divides the logits of both in the divergence.
        cross_entropy_weight: Share of the targets' loss.
        teacher: `WalkOptions` of a teacher that is `WalkInputs`.
    """

    divergence: Any = ForwardKL()
    temperature: float = 1.0
    cross_entropy_weight: float = 0.0
    teacher: Any = None

    def mix(self, of_targets, of_teacher, power: int):
        """The weighted sum of two losses, or of their derivatives with respect to logits.

        Args:
            of_targets: The targets' part, or `None` where its weight is 0.
            of_teacher: The divergence's part.
            power: Of the temperature: 2 for losses, 1 for derivatives.
        """
        of_teacher = (1 - self.cross_entropy_weight) * self.temperature**power * of_teacher
        if not self.cross_entropy_weight:
            return of_teacher
        return self.cross_entropy_weight * of_targets + of_teacher


class WalkOptions(NamedTuple):
    """What the walk needs to know besides its tensors.

    Attributes:
        score: The `keras_drill.scores.Score` that compares contexts with labels.
        compute_dtype: Dtype of the matrix products. Everything else is `accumulator_dtype`.
        label_smoothing: Share of the target's probability that is spread over all words.
        logit_soft_cap: `c` in `c * tanh(scores / c)`, or `None`.
        z_loss: Coefficient of the squared log-normaliser.
        tile_size: Tokens per tile, or `None` to derive it from `tile_bytes`.
        tile_bytes: Memory that one tile of scores may take, in bytes.
        with_ranks: Whether to count the words that are more probable than the target.
        labels_are_frozen: Whether nobody wants the labels' gradient, of scores without parameters.
        placement: How labels and tokens are shared out between devices, or `None` for one device.
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
        """Whether the derivative is a multiple of what is known of a score at once, row by row.

        But for the targets, and for a term that is the same for all labels. Then a tile holds
        exp(scores), with a soft cap times its slope, in place of the products, and is passed over
        only once. A float16 could not hold the sums of such large exponentials.
        """
        is_even = not self.label_smoothing or (
            self.logit_soft_cap is None and inputs.words_are_scores
        )
        is_one_multiple = is_even and self.distillation is None
        return self.score.is_linear and is_one_multiple and self.compute_dtype != "float16"

    def adds_up_at_once(self, inputs: WalkInputs) -> bool:
        """Whether the contexts' gradient can be added up while scores are first seen: nobody wants
        sums over rows, which need all labels' normalisers, nor the scores for something else."""
        is_wanted_alone = self.labels_are_frozen and inputs.bias is None and not self.with_ranks
        return is_wanted_alone and self.keeps_exponentials(inputs)


def tokens_per_tile(num_contexts: int, num_labels: int, options: WalkOptions) -> int:
    """Number of tokens that a tile may hold."""
    if options.tile_size is not None:
        return options.tile_size
    tile_bytes = options.tile_bytes or default_tile_bytes(0)
    per_token = bytes_per_score(options.compute_dtype) * num_contexts * num_labels
    return max(1, tile_bytes // per_token)


def tile_count(num_tokens, num_contexts: int, num_labels: int, options: WalkOptions):
    """Number of tiles that `num_tokens` (an int or a scalar tensor) are cut into."""
    size = tokens_per_tile(num_contexts, num_labels, options)
    if isinstance(num_tokens, int):
        return max(1, math.ceil(num_tokens / size))
    return ops.maximum(1, (num_tokens + size - 1) // size)
