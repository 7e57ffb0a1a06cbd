"""Sections `[optimizer]` and `[training]`: optimizer and training loop, for all tasks."""

import dataclasses

from keras_drill.workbench.tasks.config.option import LARGEST_SEED, option


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
    """Section `[optimizer]`: optimizer, learning rate and clipping."""

    kind: str = option(
        "nt-asgd",
        '"nt-asgd" (SGD that averages the weights once validation stops improving), "sgd" or '
        '"adam"',
        choices=("nt-asgd", "sgd", "adam"),
    )
    learning_rate: float = option(
        30.0, "learning rate; with warm-up or a schedule, its maximum", minimum=0
    )
    beta_2: float = option(
        0.999, "decay rate of the running mean of squared gradients (only adam)", above=0, below=1
    )
    accumulate_steps: int = option(
        1, "number of batches whose gradients are averaged for one update", minimum=1
    )
    schedule: str = option(
        "constant",
        'learning rate after the warm-up: "constant", "inverse-sqrt", "cosine" or "linear"',
        choices=("constant", "inverse-sqrt", "cosine", "linear"),
    )
    warmup_steps: int = option(
        0, "number of steps in which the learning rate rises from 0", minimum=0
    )
    decay_steps: int = option(
        0,
        "number of steps after the warm-up in which the learning rate falls; 0: up to the last "
        "epoch (only cosine, linear)",
        minimum=0,
    )
    final_share: float = option(
        0.0,
        "learning rate at the end of the schedule, as a share of learning_rate (only cosine, "
        "linear)",
        minimum=0,
        maximum=1,
    )
    validation_decay: float = option(
        1.0,
        "factor on the learning rate whenever the validation loss stops improving; 1: off",
        above=0,
        maximum=1,
    )
    validation_patience: int = option(
        1,
        "number of epochs without a better validation loss after which validation_decay applies",
        minimum=1,
    )
    weight_decay: float = option(1.2e-6, "weight decay of all weights", minimum=0)
    clip_norm: float = option(
        0.25, "maximum norm of the whole gradient, which is clipped; 0: no clipping", minimum=0
    )
    nonmonotone_interval: int = option(
        5,
        "number of epochs without improvement before averaging begins; 0: average from the "
        "first step (only nt-asgd)",
        minimum=0,
    )
    scale_with_length: bool = option(
        True, "scale the learning rate with the sequence length of the step, if lengths vary"
    )

    @property
    def is_adam_with_rate_of_sgd(self) -> bool:
        """Whether `kind` is "adam" with a learning rate that suits only SGD."""
        return self.kind == "adam" and self.learning_rate > 1

    @property
    def ends_with_last_epoch(self) -> bool:
        """Whether the schedule falls until the last epoch, so it depends on `training.epochs`."""
        return self.schedule in ("cosine", "linear") and not self.decay_steps


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Section `[training]`: epochs, stopping, devices, precision and checkpoints."""

    epochs: int = option(500, "maximum number of epochs", minimum=1, may_change=True)
    patience: int = option(
        0,
        "stop after this number of epochs without a better validation loss, with nt-asgd not "
        "before averaging; 0: never",
        minimum=0,
        may_change=True,
    )
    stopping: str = option(
        "patience",
        'criterion for stopping: "patience", or "non-monotone" (the loss is above the best one '
        "from before the last patience epochs, as in AWD-LSTM's fine-tuning)",
        choices=("patience", "non-monotone"),
        may_change=True,
    )
    seed: int = option(
        0,
        "random seed of the initial weights, of dropout, and of the batches",
        minimum=0,
        maximum=LARGEST_SEED,
    )
    strategy: str = option(
        "none",
        'devices: "none" (one), "mirrored" (all of this machine), "multi-worker" (all workers '
        'in TF_CONFIG) or "tpu"',
        may_change=True,
    )
    precision: str = option(
        "float32",
        'Keras dtype policy: "float32", "mixed_bfloat16" or "mixed_float16"',
        choices=("float32", "mixed_bfloat16", "mixed_float16"),
    )
    jit_compile: bool = option(False, "compile the training step with XLA")
    deterministic: bool = option(
        True,
        "use only deterministic operations, so that a resumed run gives exactly the same weights",
    )
    checkpoint_every: int = option(
        200,
        "number of batches between checkpoints; 0: only after each epoch",
        minimum=0,
        may_change=True,
    )
    keep_checkpoints: int = option(
        2, "number of last checkpoints to keep", minimum=1, may_change=True
    )
    average_checkpoints: int = option(
        0,
        "number of last checkpoints whose weights are averaged; the average is used if it is "
        "better; 0: off",
        minimum=0,
        may_change=True,
    )
    start_from: str = option(
        "", "folder of a run whose weights initialize the model; empty: random weights"
    )
    tensorboard: bool = option(
        True, "write curves for TensorBoard to the folder logs/ of the run", may_change=True
    )
