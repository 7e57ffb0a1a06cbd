"""Options of the network under the output layer."""

import dataclasses

from keras_drill.training.config.option import option


@dataclasses.dataclass(frozen=True)
class BackboneConfig:
    """Section `[backbone]`: the recurrent network that reads the words."""

    kind: str = option("awd-lstm", '"awd-lstm" or "gru"', choices=("awd-lstm", "gru"))
    embedding_dim: int = option(400, "size of the word embeddings", minimum=1)
    units: int = option(1150, "size of the recurrent layers but the last", minimum=1)
    num_layers: int = option(3, "recurrent layers", minimum=1)
    output_dim: int = option(
        0,
        "size of the last recurrent layer; 0: embedding_dim, which weight tying needs (not mos)",
        minimum=0,
    )
    dropout: float = option(0.4, "dropout on the output", minimum=0, below=1)
    hidden_dropout: float = option(0.25, "dropout between recurrent layers", minimum=0, below=1)
    input_dropout: float = option(0.65, "dropout on the embedded words", minimum=0, below=1)
    embedding_dropout: float = option(
        0.1, "probability to drop a word from the embedding for a step", minimum=0, below=1
    )
    weight_dropout: float = option(
        0.5, "dropout on the recurrent matrices (awd-lstm)", minimum=0, below=1
    )
    activation_regularization: float = option(2.0, "AR, alpha (awd-lstm)", minimum=0)
    temporal_activation_regularization: float = option(1.0, "TAR, beta (awd-lstm)", minimum=0)
