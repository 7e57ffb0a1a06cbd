"""Accumulates the results of all tiles of a walk. Shape letters: see `walk`."""

from typing import NamedTuple

from keras import ops

from keras_drill.fused_loss.inputs import WalkInputs, WalkOptions
from keras_drill.fused_loss.matrix_accumulator import MatrixSum
from keras_drill.fused_loss.second_pass import TileGradients
from keras_drill.fused_loss.token_tiles import TokenTiles
from keras_drill.types import Tensor


class RunningSums(NamedTuple):
    """The results of all tiles so far. Results that are not needed are `()`.

    Attributes:
        losses, log_probs: `[padded]`.
        posteriors: `[padded, S]`.
        ranks: `[padded]`.
        gradients: `TileGradients`, with the gradients of contexts and log-priors for all tokens.
    """

    losses: Tensor
    log_probs: Tensor
    posteriors: Tensor
    ranks: Tensor
    gradients: TileGradients | tuple[()]

    @staticmethod
    def zeros(
        inputs: WalkInputs,
        options: WalkOptions,
        padded,
        with_gradients: bool,
        d_labels: MatrixSum | None,
    ) -> "RunningSums":
        def zeros(*shape):
            return ops.zeros(shape, options.accumulator_dtype)

        num_contexts, width = inputs.contexts.shape[1:]
        num_labels, num_columns = inputs.labels.shape[0], inputs.columns.shape[1]
        gradients: TileGradients | tuple[()] = ()
        if with_gradients:
            is_even = options.keeps_exponentials(inputs) and options.label_smoothing
            gradients = TileGradients(
                contexts=zeros(padded, num_contexts, width),
                log_priors=() if inputs.log_priors is None else zeros(padded, num_contexts),
                label_sums=(zeros(num_labels),) * options.score.num_label_sums,
                bias=() if inputs.bias is None else zeros(num_labels),
                even=zeros(width) if is_even else (),
                labels=() if d_labels is None else d_labels.zeros(),
            )
        posteriors = zeros(padded, num_columns) if num_columns > 1 else ()
        ranks = zeros(padded) if options.with_ranks else ()
        return RunningSums(zeros(padded), zeros(padded), posteriors, ranks, gradients)

    def add(self, tiles: TokenTiles, index, found, gradients: TileGradients | None):
        """Returns the results plus one tile: its results `found`, in order, and its gradients."""

        def put(whole, of_tile):
            return () if or_none(whole) is None else tiles.put(whole, index, of_tile)

        def plus(total, part):
            return () if or_none(total) is None else total + part

        losses, log_probs, posteriors, ranks = (
            put(whole, of_tile) for whole, of_tile in zip(self[:4], found, strict=True)
        )
        sums = self.gradients
        if sums and gradients is not None:
            sums = TileGradients(
                contexts=put(sums.contexts, gradients.contexts),
                log_priors=put(sums.log_priors, gradients.log_priors),
                label_sums=tuple(map(plus, sums.label_sums, gradients.label_sums)),
                bias=plus(sums.bias, gradients.bias),
                even=plus(sums.even, gradients.even),
                labels=gradients.labels,
            )
        return RunningSums(losses, log_probs, posteriors, ranks, sums)

    @property
    def last(self):
        """A tensor that exists only when the last tile is complete."""
        if not self.gradients:
            return self.log_probs
        return (
            self.gradients.contexts
            if or_none(self.gradients.labels) is None
            else (self.gradients.labels)
        )


def or_none(x):
    """Returns a running result, or `None` if it is not needed."""
    return None if isinstance(x, tuple) and not x else x
