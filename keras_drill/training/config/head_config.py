"""Options of the output layer."""

import dataclasses

from keras_drill.training.config.option import option


@dataclasses.dataclass(frozen=True)
class HeadConfig:
    """Section `[head]`: the output layer."""

    kind: str = option(
        "tied",
        '"softmax", "tied", "bilinear", "dual" or "drill"',
        choices=("softmax", "tied", "bilinear", "dual", "drill"),
    )
    depth: int = option(1, "layers of the label encoder (drill)", minimum=1)
    units: int = option(0, "size of the joint space (dual); 0: embedding_dim", minimum=0)
    activation: str = option("relu", "any Keras activation (drill, dual)")
    dropout: float = option(0.0, "dropout inside the label encoder (drill)", minimum=0, below=1)
    variational_dropout: bool = option(False, "one dropout mask for all words (drill)")
    residual_to_input: bool = option(True, "add the embedding after each layer (drill)")
    residual_to_previous: bool = option(False, "add the layer before after each layer (drill)")
    encode_hidden: bool = option(False, "the same network on the hidden side (drill)")
    use_bias: bool = option(True, "one bias per word")
    logit_soft_cap: float = option(0.0, "scores become cap·tanh(score/cap); 0: off", minimum=0)
    z_loss: float = option(0.0, "weight of the squared log-normaliser in the loss", minimum=0)
    label_smoothing: float = option(
        0.0, "part of the probability spread over all words", minimum=0, below=1
    )
    tile_size: int = option(0, "tokens per tile of the loss; 0: chosen from memory", minimum=0)
