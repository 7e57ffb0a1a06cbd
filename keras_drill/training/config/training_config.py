"""Options of the training loop."""

import dataclasses

from keras_drill.training.config.option import option


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Section `[training]`."""

    epochs: int = option(500, "most passes over the training text", minimum=1, may_change=True)
    patience: int = option(
        0,
        "stop after so many epochs without a better validation loss; 0: never",
        minimum=0,
        may_change=True,
    )
    seed: int = option(0, "of the weights, the dropout and the lengths", minimum=0)
    precision: str = option(
        "float32",
        '"float32", "mixed_bfloat16" or "mixed_float16"',
        choices=("float32", "mixed_bfloat16", "mixed_float16"),
    )
    jit_compile: bool = option(False, "compile the training step with XLA")
    deterministic: bool = option(
        True, "only operations that give the same bits each time: resuming is exact"
    )
    checkpoint_every: int = option(
        200, "batches between checkpoints; 0: after each epoch only", minimum=0, may_change=True
    )
    tensorboard: bool = option(True, "write curves to logs/ for TensorBoard", may_change=True)
