"""Options of the optimizer."""

import dataclasses

from keras_drill.training.config.option import option


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
    """Section `[optimizer]`."""

    kind: str = option(
        "nt-asgd",
        '"nt-asgd" (SGD that switches to averaging), "sgd" or "adam"',
        choices=("nt-asgd", "sgd", "adam"),
    )
    learning_rate: float = option(30.0, "step size", minimum=0)
    weight_decay: float = option(1.2e-6, "decay of all weights", minimum=0)
    clip_norm: float = option(0.25, "largest norm of the whole gradient; 0: not clipped", minimum=0)
    nonmonotone_interval: int = option(
        5, "epochs without improvement before averaging starts (nt-asgd)", minimum=1
    )
    scale_with_length: bool = option(
        True, "learning rate in proportion to the length of the sequence, when it varies"
    )
