"""Statistics over all words of a tile, for label smoothing and the ranks of targets.

The log-probability of a word sums over its labels and over all contexts:

    log P_v = lse_k(log_prior_k - lse(s_k) + lse(s_k[labels of v]))

If every word has one label and every token one context, the scores suffice, and these
log-probabilities are not stored. Otherwise, they are a tensor `[T, V]`, which is smaller than the
tile of scores. Shape letters: see `walk`.
"""

from functools import partial
from typing import NamedTuple

from keras import ops

from keras_drill.fused_loss.biased_scores import biased_scores
from keras_drill.fused_loss.first_pass import TileScores, TileTargets
from keras_drill.fused_loss.inputs import WalkInputs, WalkOptions
from keras_drill.fused_loss.label_blocks import LabelBlock, Labels
from keras_drill.fused_loss.label_shard import NEVER
from keras_drill.fused_loss.token_tiles import Tile
from keras_drill.ops.graph import fold_columns, with_dependencies
from keras_drill.ops.word_log_probs import log_sum_exp, word_log_probs
from keras_drill.types import Tensor


class TileWords(NamedTuple):
    """Statistics of the words of a tile, for label smoothing and ranks.

    Attributes:
        num_words: V.
        log_probs: A list of `[T, B]`, one for each block, or of a single `[T, V]` with
            `WordLabels`.
        uniform: `[T]`, the mean of `-log_probs` over all words, or `None` if not needed.
        totals: `[T, K]`, the posterior over contexts summed over all words, or `None` if not needed
            or if K = 1.
    """

    num_words: int
    log_probs: list
    uniform: Tensor | None = None
    totals: Tensor | None = None


class Words:
    """Computes `TileWords` from the kept products of a tile.

    Args:
        inputs: `WalkInputs`.
        options: `WalkOptions`.
        labels: The walk's `Labels`.
        compiled: Function that compiles an element-wise function to one pass over memory, where
            this is faster.

    Attributes:
        smooths: Whether label smoothing needs more than the mean score.
        needs_products: Whether tiles must keep their products until the statistics are computed.
    """

    def __init__(self, inputs: WalkInputs, options: WalkOptions, labels: Labels, compiled):
        self._options = options
        self._labels = labels
        self._word_labels = word_labels = inputs.word_labels
        # Scores compare exactly only if they are plain products: other operations may round
        # differently.
        self._scores_rank = (
            inputs.words_are_scores and options.score.is_linear and options.logit_soft_cap is None
        )
        self.smooths = bool(options.label_smoothing) and not inputs.words_are_scores
        self.needs_products = self.smooths or options.with_ranks
        self._num_words = labels.num_labels if word_labels is None else word_labels.mask.shape[0]
        self._shard = labels.shard
        self._label_log_probs = compiled(partial(_label_log_probs, options))
        self._word_log_probs = partial(_word_log_probs, labels.shard, compiled)
        self._posterior_sums = compiled(partial(_posterior_sums, options))
        self._num_better = compiled(num_better)
        self._num_better_scores = compiled(partial(_num_better_scores, options))

    def of_tile(self, tile: Tile, scores: TileScores, targets: TileTargets) -> tuple:
        """Returns `TileWords` or `None`, and ranks `[T]` or `None`, if they are needed."""
        words = None
        if self.smooths or (self._options.with_ranks and not self._scores_rank):
            words = self._words(tile, scores)
        return words, self._ranks(
            tile, scores, targets, words
        ) if self._options.with_ranks else None

    def log_probs(self, tile: Tile, scores: TileScores) -> list:
        """Returns the log-probabilities of all words, as in `TileWords`."""
        log_probs, normalizer = [], scores.log_normalizer
        for products, block in zip(scores.products, self._labels.blocks, strict=True):
            log_probs.append(
                self._label_log_probs(
                    products,
                    tile.hidden_terms,
                    block.bias,
                    block.terms,
                    normalizer,
                    tile.log_priors,
                    block.exists,
                )
            )  # [T, B]
            normalizer = with_dependencies(
                normalizer, log_probs[-1]
            )  # the next block waits for this one
        if self._word_labels is not None:
            whole = log_probs[0] if len(log_probs) == 1 else ops.concatenate(log_probs, axis=1)
            # [T, V] is summed over devices, since the labels of a word may be on several devices.
            log_probs = [
                self._shard.log_sum_exp(self._word_log_probs(whole, *self._word_labels[:2]))
            ]
        return log_probs

    def _words(self, tile: Tile, scores: TileScores) -> TileWords:
        log_probs, normalizer = self.log_probs(tile, scores), scores.log_normalizer
        words = TileWords(self._num_words, log_probs)
        if not self.smooths:
            return words
        uniform = self._mean_loss(log_probs)
        if tile.num_contexts == 1:
            return words._replace(uniform=uniform)
        totals = [
            self._posterior_sums(
                products,
                tile.hidden_terms,
                block.bias,
                block.terms,
                normalizer,
                tile.log_priors,
                self.of_labels(words, k, block),
                block.exists,
            )
            for k, (products, block) in enumerate(
                zip(scores.products, self._labels.blocks, strict=True)
            )
        ]
        return words._replace(uniform=uniform, totals=self._shard.sum(sum(totals)))

    def _mean_loss(self, log_probs: list) -> Tensor:
        """Returns the mean `[T]` of `-log_probs` over all words."""
        if self._word_labels is not None:
            return -ops.sum(log_probs[0], axis=-1) / self._num_words
        pairs = zip(log_probs, self._labels.blocks, strict=True)
        sums = [ops.sum(_clear(x, block.exists), axis=-1) for x, block in pairs]
        return -self._shard.sum(sum(sums)) / self._num_words

    def of_labels(self, words: TileWords, k: int, block: LabelBlock):
        """Returns the log-probability `[T, B]` of the word of every label in block number `k`."""
        if self._word_labels is None:
            return words.log_probs[k]
        return ops.take(words.log_probs[0], self._word_labels.words[block.start : block.stop], -1)

    def _ranks(self, tile: Tile, scores: TileScores, targets: TileTargets, words) -> Tensor:
        """Counts the words that are more probable than each target, `[T]`.

        Among equally probable words, the first one counts as more probable, as in an argmax. If the
        target's probability is NaN, all words count as more probable.
        """
        blocks, shard = self._labels.blocks, self._shard
        here = tile.targets if shard.axis is None else tile.targets - shard.first
        if self._scores_rank:
            target_scores = scores.selected
            counts = [
                self._num_better_scores(
                    products, block.bias, target_scores, here - block.start, block.exists
                )
                for products, block in zip(scores.products, blocks, strict=True)
            ]
        else:
            heres = [here - block.start for block in blocks]
            if self._word_labels is not None:
                heres = [tile.targets]
            target_scores = None
            for x, here in zip(words.log_probs, heres, strict=True):
                found = ops.take_along_axis(x, ops.clip(here, 0, x.shape[1] - 1)[:, None], axis=-1)
                is_here = ops.logical_and(here >= 0, here < x.shape[1])[:, None]
                if target_scores is not None:
                    found = ops.where(is_here, found, target_scores)
                target_scores = found
            if self._word_labels is None:
                target_scores = shard.sum(shard.only_here(target_scores, here[:, None]))
            counts = [
                self._num_better(x, target_scores, here)
                for x, here in zip(words.log_probs, heres, strict=True)
            ]
        ranks = sum(counts) if self._word_labels is not None else shard.sum(sum(counts))
        return ops.where(ops.isnan(targets.log_probs), ops.full_like(ranks, self._num_words), ranks)


def relative_scores(scores, log_normalizer, log_priors):
    """Returns joint log-probabilities of contexts and labels, `[R, B]`."""
    scores = scores - log_normalizer[:, None]
    return scores if log_priors is None else scores + ops.reshape(log_priors, (-1, 1))


def posteriors(scores, log_normalizer, log_priors, word_log_probs):
    """Returns probabilities `[R, B]` of context and label given the label's word."""
    scores = relative_scores(scores, log_normalizer, log_priors)
    if log_priors is not None:
        word_log_probs = ops.repeat(word_log_probs, log_priors.shape[1], axis=0)
    return ops.exp(scores - word_log_probs)


def _label_log_probs(
    options, products, hidden_terms, bias, label_terms, log_normalizer, log_priors, exists
):
    """Returns log-probabilities of a block's labels, over all contexts: `[T, B]`."""
    scores = biased_scores(options, products, hidden_terms, bias, label_terms, exists)
    scores = relative_scores(scores, log_normalizer, log_priors)
    if log_priors is None:
        return scores
    scores = ops.reshape(scores, (-1, log_priors.shape[1], scores.shape[1]))
    return log_sum_exp([scores[:, k] for k in range(log_priors.shape[1])])


def _word_log_probs(shard, compiled, label_log_probs, columns, mask):
    """Runs `word_log_probs` on this device's labels. Words without a label here get `NEVER`."""
    if shard.axis is None:
        return word_log_probs(label_log_probs, columns, mask, compiled=compiled)
    columns = columns - shard.first
    mask = ops.logical_and(mask, shard.has(columns))
    columns = ops.clip(columns, 0, shard.size - 1)
    return word_log_probs(label_log_probs, columns, mask, NEVER, compiled)


def _posterior_sums(
    options,
    products,
    hidden_terms,
    bias,
    label_terms,
    log_normalizer,
    log_priors,
    word_log_probs,
    exists,
):
    """Returns the posterior over contexts `[T, K]`, summed over the words of a block."""
    scores = biased_scores(options, products, hidden_terms, bias, label_terms)
    shares = _clear(posteriors(scores, log_normalizer, log_priors, word_log_probs), exists)
    sums = ops.sum(fold_columns(ops.add, shares), axis=-1)
    return ops.reshape(sums, (-1, log_priors.shape[1]))


def _num_better_scores(options, products, bias, target_scores, here, exists):
    return num_better(biased_scores(options, products, (), bias, (), exists), target_scores, here)


def _clear(x, exists):
    """Returns `x` `[..., B]` with zeros for padding labels."""
    return x if exists is None else ops.where(exists, x, ops.zeros_like(x))


def num_better(scores, target_scores, here):
    """Counts the words of a block that rank before the target.

    These words have a higher score, or an equal score and a lower index.

    Args:
        scores: Scores of the block's words, `[T, B]`.
        target_scores: Scores of the targets, `[T, 1]`.
        here: Index of each target relative to the block, `[T]`. It may be outside the block.

    Returns:
        `[T]`.
    """
    index, here = ops.arange(scores.shape[1], dtype="int32"), here[:, None]
    is_better = ops.where(index < here, scores >= target_scores, scores > target_scores)
    # Compilers may round a score in one place and not in another, so exclude the target itself.
    is_better = ops.logical_and(is_better, index != here)
    counts = ops.cast(is_better, target_scores.dtype)
    return ops.sum(fold_columns(ops.add, counts), axis=-1)
