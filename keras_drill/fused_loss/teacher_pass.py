"""Computes the teacher's log-probabilities of a tile's words, and the divergence from them.

The teacher is constant. Its log-probabilities of all words are computed once for each tile and kept
until the second pass has computed the derivatives. Shape letters: see `walk`.
"""

from functools import partial

import keras
from keras import ops

from keras_drill.fused_loss.biased_scores import biased_scores
from keras_drill.fused_loss.first_pass import TileScores, tile_scores
from keras_drill.fused_loss.inputs import Distillation, StoredTeacher, WalkInputs, WalkOptions
from keras_drill.fused_loss.label_blocks import LabelBlock, Labels, cut_labels
from keras_drill.fused_loss.label_shard import NEVER
from keras_drill.fused_loss.recomputed_products import RecomputedProducts
from keras_drill.fused_loss.teacher_tile import TeacherTile, both, tempered
from keras_drill.fused_loss.token_tiles import Tile
from keras_drill.fused_loss.word_statistics import Words
from keras_drill.ops.graph import fold_columns, with_dependencies
from keras_drill.types import Tensor


class TeacherPass:
    """Computes the `TeacherTile` of each tile.

    Args:
        inputs: `WalkInputs` of the student, with a teacher.
        options: `WalkOptions` of the student.
        distillation: `Distillation`.
        labels: The student's `Labels`.
        floats_per_label: The width for which `label_blocks` cut the labels.
        compiled: Function that compiles an element-wise function to one pass over memory, where
            this is faster.
    """

    def __init__(
        self,
        inputs: WalkInputs,
        options: WalkOptions,
        distillation: Distillation,
        labels: Labels,
        floats_per_label: int,
        compiled,
    ):
        self._options = options
        self._distillation = distillation
        self._labels = labels
        self._compiled = compiled
        self._temperature = distillation.temperature
        self._is_stored = isinstance(inputs.teacher, StoredTeacher)
        self._sums = compiled(partial(_sums, options))
        self._tempered_mass = compiled(partial(_tempered_mass, options))
        self._mass = compiled(partial(_mass, self._temperature))
        if not self._is_stored:
            teacher, of_teacher = inputs.teacher, distillation.teacher
            self._teacher_labels = cut_labels(teacher, of_teacher, floats_per_label, labels.shard)
            self._words = Words(teacher, of_teacher, self._teacher_labels, compiled)
            self._strategy = RecomputedProducts(
                of_teacher, self._teacher_labels, self._words, compiled
            )

    def of_tile(self, tile: Tile, scores: TileScores) -> TeacherTile:
        """Computes the `TeacherTile` of a tile whose products are kept in `scores`."""
        # The teacher's products wait until the student's are complete.
        last, normalizer = scores.log_normalizer, scores.log_normalizer
        log_probs, teacher_normalizer = self._of_stored(tile, last), None
        if not self._is_stored:
            log_probs = self._of_teacher(tile, last)
        if self._temperature != 1:
            normalizer = self._combine(
                self._tempered_mass(products, _inputs_of_scores(tile, block))
                for products, block in self._blocks(scores)
            )
            if not self._is_stored:
                teacher_normalizer = self._combine(self._mass(x) for x in log_probs)
        sums, after = [], normalizer
        for (products, block), of_teacher in zip(self._blocks(scores), log_probs, strict=True):
            sums.append(
                self._sums(
                    products, _inputs_of_scores(tile, block), of_teacher, teacher_normalizer, after
                )
            )
            after = with_dependencies(after, *sums[-1])  # the next block waits for this one
        totals = [self._labels.shard.sum(sum(parts)) for parts in zip(*sums, strict=True)]
        return TeacherTile(log_probs, teacher_normalizer, normalizer, tuple(totals))

    def losses(self, of_targets: Tensor, teacher_tile: TeacherTile) -> Tensor:
        """Returns the mixed losses `[T]`, given the losses of the targets."""
        distillation = self._distillation
        # No divergence is negative, except by rounding.
        divergences = ops.maximum(distillation.divergence.value(teacher_tile.sums), 0.0)
        return distillation.mix(of_targets, divergences, power=2)

    def _blocks(self, scores: TileScores):
        return zip(scores.kept, self._labels.blocks, strict=True)

    def _combine(self, parts) -> Tensor:
        """Returns the log-normaliser `[T]` from maxima and sums of exponentials of all blocks."""
        tops, masses = (ops.stack(x, axis=-1) for x in zip(*parts, strict=True))
        top = self._labels.shard.maximum(ops.max(tops, axis=-1))
        mass = ops.sum(masses * ops.exp(tops - top[:, None]), axis=-1)
        return top + ops.log(self._labels.shard.sum(mass))

    def _of_teacher(self, tile: Tile, last: Tensor) -> list:
        """Returns log-probabilities of all words, for each block of the student's labels."""
        inputs = tile.teacher._replace(hidden=with_dependencies(tile.teacher.hidden, last))
        scores = tile_scores(inputs, self._teacher_labels, self._strategy, with_products=True)
        found = self._words.log_probs(inputs, scores)
        if len(found) == 1 < len(self._labels.blocks):
            found = [found[0][:, block.start : block.stop] for block in self._labels.blocks]
        return [ops.cast(x, self._options.accumulator_dtype) for x in found]

    def _of_stored(self, tile: Tile, last: Tensor) -> list:
        """Returns log-probabilities of all words; `NEVER` for words that are not stored."""
        if not self._is_stored:
            return []
        words, probabilities = tile.teacher
        words = words - self._labels.shard.first
        num_tokens, dtype = ops.shape(words)[0], self._options.accumulator_dtype
        rows = ops.broadcast_to(ops.arange(num_tokens)[:, None], ops.shape(words))
        found = []
        for block in self._labels.blocks:
            here = words - block.start
            is_here = ops.logical_and(here >= 0, here < block.size)
            indices = ops.stack([rows, ops.where(is_here, here, 0)], axis=-1)
            values = ops.where(is_here, ops.cast(probabilities, dtype), 0.0)
            values = with_dependencies(ops.reshape(values, (-1,)), last)
            indices = ops.reshape(ops.cast(indices, "int32"), (-1, 2))
            dense = ops.scatter(indices, values, (num_tokens, block.size))
            found.append(self._compiled(_log)(dense))
        return found


def _sums(options, products, of_scores, log_probs, teacher_normalizer, normalizer):
    scores = biased_scores(options, products, *of_scores)
    pair = both(options.distillation, scores, log_probs, teacher_normalizer, normalizer)
    return options.distillation.divergence.sums(*pair)


def _tempered_mass(options, products, of_scores):
    return _mass(options.distillation.temperature, biased_scores(options, products, *of_scores))


def _mass(temperature, scores):
    """Returns each row's maximum at a temperature, and the sum of `exp(logits - maximum)`."""
    scores = tempered(scores, temperature)
    top = ops.max(fold_columns(ops.maximum, scores), axis=-1)
    return top, ops.sum(fold_columns(ops.add, ops.exp(scores - top[:, None])), axis=-1)


def _inputs_of_scores(tile: Tile, block: LabelBlock) -> tuple:
    """Returns the arguments of `biased_scores` that follow options and products."""
    return tile.hidden_terms, block.bias, block.terms, block.exists


def _log(probabilities):
    is_known = probabilities > 0
    logs = ops.log(ops.where(is_known, probabilities, ops.ones_like(probabilities)))
    never = ops.cast(NEVER, keras.backend.standardize_dtype(probabilities.dtype))
    return ops.where(is_known, logs, never)
