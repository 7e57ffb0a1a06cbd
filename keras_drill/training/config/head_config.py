"""Options of the output layer."""

import dataclasses

from keras_drill.training.config.option import option

_KINDS = ("softmax", "tied", "bilinear", "dual", "drill", "mos", "kerbs", "drill-kerbs")


@dataclasses.dataclass(frozen=True)
class HeadConfig:
    """Section `[head]`: the output layer."""

    kind: str = option("tied", ", ".join(f'"{kind}"' for kind in _KINDS), choices=_KINDS)
    tied: bool = option(
        True, "labels are the embeddings of the words that are read (mos, kerbs, drill-kerbs)"
    )
    depth: int = option(1, "layers of the label encoder (drill, drill-kerbs)", minimum=1)
    units: int = option(0, "size of the joint space (dual); 0: embedding_dim", minimum=0)
    activation: str = option("relu", "any Keras activation (drill, drill-kerbs, dual)")
    dropout: float = option(
        0.0, "dropout inside the label encoder (drill, drill-kerbs)", minimum=0, below=1
    )
    variational_dropout: bool = option(False, "one dropout mask for all words (drill, drill-kerbs)")
    residual_to_input: bool = option(
        True, "add the embedding after each layer (drill, drill-kerbs)"
    )
    residual_to_previous: bool = option(
        False, "add the layer before after each layer (drill, drill-kerbs)"
    )
    encode_hidden: bool = option(False, "the same network on the hidden side (drill, drill-kerbs)")
    num_mixtures: int = option(15, "softmaxes that are mixed (mos)", minimum=1)
    context_dim: int = option(
        0, "size of their contexts, and of untied labels (mos); 0: embedding_dim", minimum=0
    )
    context_dropout: float = option(0.0, "dropout on their contexts (mos)", minimum=0, below=1)
    use_bias: bool = option(True, "one bias per word, or per sense")
    logit_soft_cap: float = option(0.0, "scores become cap·tanh(score/cap); 0: off", minimum=0)
    z_loss: float = option(0.0, "weight of the squared log-normaliser in the loss", minimum=0)
    label_smoothing: float = option(
        0.0,
        "part of the probability spread over all words (not mos, kerbs, drill-kerbs)",
        minimum=0,
        below=1,
    )
    tile_size: int = option(0, "tokens per tile of the loss; 0: chosen from memory", minimum=0)

    @property
    def has_senses(self) -> bool:
        """Whether words have several senses, so that section `[senses]` counts."""
        return self.kind in ("kerbs", "drill-kerbs")

    @property
    def shares_embedding(self) -> bool:
        """Whether the labels are made from the embeddings of the words that are read."""
        if self.kind == "mos" or self.has_senses:
            return self.tied
        return self.kind != "softmax"
