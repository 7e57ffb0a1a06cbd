"""Options of the optimizer and of the training loop."""

import dataclasses

from keras_drill.workbench.tasks.config.option import LARGEST_SEED, option


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
    """Section `[optimizer]`."""

    kind: str = option(
        "nt-asgd",
        '"nt-asgd" (SGD that switches to averaging), "sgd" or "adam"',
        choices=("nt-asgd", "sgd", "adam"),
    )
    learning_rate: float = option(30.0, "step size; with a schedule, at its peak", minimum=0)
    beta_2: float = option(0.999, "decay of the mean square (adam)", above=0, below=1)
    accumulate_steps: int = option(
        1, "batches whose gradients are averaged for one update", minimum=1
    )
    schedule: str = option(
        "constant",
        'the learning rate after the warm-up: "constant", "inverse-sqrt", "cosine" or "linear"',
        choices=("constant", "inverse-sqrt", "cosine", "linear"),
    )
    warmup_steps: int = option(0, "steps in which the learning rate rises from 0", minimum=0)
    decay_steps: int = option(
        0,
        "steps after it in which the rate falls (cosine, linear); 0: up to the last epoch",
        minimum=0,
    )
    final_share: float = option(
        0.0, "part of the rate that is left then (cosine, linear)", minimum=0, maximum=1
    )
    validation_decay: float = option(
        1.0,
        "the rate is multiplied by this when validation stops improving; 1: never",
        above=0,
        maximum=1,
    )
    validation_patience: int = option(
        1, "epochs without a better validation loss before it is", minimum=1
    )
    weight_decay: float = option(1.2e-6, "decay of all weights", minimum=0)
    clip_norm: float = option(0.25, "largest norm of the whole gradient; 0: not clipped", minimum=0)
    nonmonotone_interval: int = option(
        5,
        "epochs without improvement before averaging starts (nt-asgd); 0: from the first step",
        minimum=0,
    )
    scale_with_length: bool = option(
        True, "learning rate in proportion to the length of the sequence, when it varies"
    )

    @property
    def is_adam_with_rate_of_sgd(self) -> bool:
        """Whether the user probably changed `kind` and forgot to change `learning_rate`."""
        return self.kind == "adam" and self.learning_rate > 1

    @property
    def ends_with_last_epoch(self) -> bool:
        """Whether the learning rate of each step depends on the number of epochs."""
        return self.schedule in ("cosine", "linear") and not self.decay_steps


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Section `[training]`."""

    epochs: int = option(500, "most passes over the training text", minimum=1, may_change=True)
    patience: int = option(
        0,
        "stop after so many epochs without a better validation loss; 0: never; "
        "nt-asgd averages first",
        minimum=0,
        may_change=True,
    )
    stopping: str = option(
        "patience",
        '"patience", or "non-monotone": at a loss above the best one from before the last so many '
        "epochs (AWD-LSTM's fine-tuning)",
        choices=("patience", "non-monotone"),
        may_change=True,
    )
    seed: int = option(
        0, "of the weights, the dropout and the lengths", minimum=0, maximum=LARGEST_SEED
    )
    strategy: str = option(
        "none",
        'devices: "none" (one), "mirrored" (all of this machine), "multi-worker" (those of '
        'TF_CONFIG) or "tpu"',
        may_change=True,
    )
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
    keep_checkpoints: int = option(
        2, "how many checkpoints to keep, the last ones", minimum=1, may_change=True
    )
    average_checkpoints: int = option(
        0,
        "evaluate the mean of the weights of so many last checkpoints, where it is better; 0: off",
        minimum=0,
        may_change=True,
    )
    start_from: str = option("", "folder of a run whose weights to begin with; empty: none")
    tensorboard: bool = option(True, "write curves to logs/ for TensorBoard", may_change=True)
