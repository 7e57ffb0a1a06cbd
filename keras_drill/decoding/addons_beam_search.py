"""The beam search of tensorflow-addons."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_drill.decoding.beam_search import BeamSearch
from keras_drill.decoding.rows import Rows
from keras_drill.ops.top_k import top_k
from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class AddonsBeamSearch(BeamSearch):
    """Beam search with the same results as tensorflow-addons' `BeamSearchDecoder`.

    This search differs from `BeamSearch` in two terms of a beam's score:

    - Length penalty: the length |y| excludes the end token at the step that generates it, and
      includes the end token at later steps.
    - Coverage penalty: the coverage is 0 up to the step that generates the end token. At later
      steps it is computed without the source positions that received no attention.

    With a penalty, the score of a beam therefore changes at the step after its end token. So the
    search continues until all beams have ended.

    Arguments, call and result are the same as for `BeamSearch`, which defines the score.
    """

    def shortlist(self, scores: Tensor, rows: Rows, spare: int = 0) -> tuple[Tensor, Tensor]:
        if self.num_groups > 1 or not self.length_penalty:
            return super().shortlist(scores, rows, spare)
        # The end token does not count for the length. So its score may exceed that of words that
        # are more probable, and it must be in the list.
        best, words = top_k(scores, min(self.num_beams + spare + 1, scores.shape[-1]))
        words = ops.cast(words, "int32")
        end = ops.broadcast_to(ops.maximum(rows.end_token, 0), (ops.shape(words)[0], 1))
        of_end = ops.take_along_axis(scores, end, axis=1)
        is_listed = ops.any(words == rows.end_token, axis=1, keepdims=True)
        is_missing = ops.logical_and(ops.logical_not(is_listed), rows.end_token >= 0)
        of_end = ops.where(is_missing, of_end, -np.inf)
        return ops.concatenate([best, of_end], axis=1), ops.concatenate([words, end], axis=1)

    def count_words(self, rows: Rows, words: Tensor) -> Tensor:
        counts = super().count_words(rows, words)  # [R, 1]
        ends = ops.logical_and(words == rows.end_token, ops.logical_not(rows.finished)[:, None])
        return counts - ops.cast(ends, "int32")

    def coverage(self, rows: Rows) -> Tensor:
        looks = ops.sum(rows.attention, axis=1)  # [R, S]
        looks = ops.minimum(ops.where(looks == 0, 1.0, looks), 1.0)
        return ops.where(rows.finished, ops.sum(ops.log(looks), axis=-1), 0.0)

    def is_done(self, rows: Rows, memory: Any) -> Tensor:
        return ops.all(rows.finished)
