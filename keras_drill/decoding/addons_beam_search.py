"""Beam search as tensorflow-addons has it."""

from typing import Any

import keras
from keras import ops

from keras_drill.decoding.beam_search import BeamSearch
from keras_drill.decoding.rows import Rows
from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class AddonsBeamSearch(BeamSearch):
    """The search of tensorflow-addons' `BeamSearchDecoder`, to the same beams.

    It differs from `BeamSearch` where there is a length penalty: in the column where the end token
    is written it is not counted, and from then on it is. So a beam's score changes once after it
    has ended, and the search goes on until all beams have. The coverage, too, counts only from the
    column after the end, and without the positions of the source that got no attention at all.

    Arguments, call and result are those of `BeamSearch`.
    """

    def count_words(self, rows: Rows, num_words: int) -> Tensor:
        counts = super().count_words(rows, num_words)  # [R, 1]
        ends = ops.logical_and(
            ops.arange(num_words, dtype="int32") == rows.end_token,
            ops.logical_not(rows.finished)[:, None],
        )
        return counts - ops.cast(ends, "int32")

    def coverage(self, rows: Rows) -> Tensor:
        looks = ops.sum(rows.attention, axis=1)  # [R, S]
        looks = ops.minimum(ops.where(looks == 0, 1.0, looks), 1.0)
        return ops.where(rows.finished, ops.sum(ops.log(looks), axis=-1), 0.0)

    def is_done(self, rows: Rows, memory: Any) -> Tensor:
        return ops.all(rows.finished)
