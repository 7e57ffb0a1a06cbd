"""Counts the parameters that an output layer adds to a model, by formula or in a layer."""

import math
from collections.abc import Mapping, Sequence

import keras

from keras_drill.output_layer import OutputLayer
from keras_drill.senses import SenseEmbedding

CONFIGURATIONS: Mapping[str, tuple[int, int, int, int, int]] = {
    "AWD-LSTM, Penn Treebank": (10_000, 400, 400, 400, 4),
    "AWD-LSTM, WikiText-2": (33_278, 400, 400, 400, 4),
    "AWD-LSTM, WikiText-103": (267_735, 400, 400, 400, 4),
    "Transformer base, WMT14 En→De, 32k subwords": (32_000, 512, 512, 512, 2),
    "GPT-2 small": (50_257, 768, 768, 768, 4),
    "Llama 3 8B": (128_256, 4_096, 4_096, 4_096, 4),
    "AWD-LSTM, WikiText-2, narrow joint space": (33_278, 400, 400, 100, 4),
}


def count_output_parameters(
    vocabulary_size: int, embedding_dim: int, hidden_dim: int, joint_dim: int, depth: int
) -> dict[str, int]:
    """Returns the number of parameters that each output layer adds to a model with an embedding.

    With `V`, `d`, `d_h`, `d_j` and `k` for the arguments in their order:

    - softmax: `V d_h + V`
    - tied: `V`
    - bilinear: `d d_h + V`
    - dual nonlinear: `d d_j + d_j d_h + 2 d_j + V`
    - DRILL: `k (d² + d) + V`

    The counts C are ordered as follows:

    - `C_tied < C_bilinear` always.
    - `C_bilinear <= C_dual` if `d_j (d + d_h + 2) >= d d_h`, for example if `d_j >= min(d, d_h)`.
    - `C_dual <= C_softmax` if `d_j (d + d_h + 2) <= V d_h`, that is if the vocabulary is a few
      times larger than the joint space.

    Tied and DRILL need `d_h = d`, so their counts do not use `hidden_dim`.

    Args:
        vocabulary_size: Number of words `V`.
        embedding_dim: Size `d` of the shared embedding.
        hidden_dim: Size `d_h` of the hidden states.
        joint_dim: Size `d_j` of the dual nonlinear layer's joint space.
        depth: Number `k` of DRILL's label layers.

    Example:

    >>> count_output_parameters(10_000, 400, 400, 400, 4)["DRILL"]
    651600
    """
    dual = joint_dim * (embedding_dim + hidden_dim + 2)
    return {
        "softmax": vocabulary_size * hidden_dim + vocabulary_size,
        "tied": vocabulary_size,
        "bilinear": embedding_dim * hidden_dim + vocabulary_size,
        "dual nonlinear": dual + vocabulary_size,
        "DRILL": depth * (embedding_dim**2 + embedding_dim) + vocabulary_size,
    }


def count_dedicated_parameters(head: OutputLayer, backbone: keras.Layer) -> int:
    """Counts the trainable parameters that an output layer adds to a model with a word embedding.

    A shared embedding adds no parameters. A shared `SenseEmbedding` adds the embeddings of all
    senses except one per word, and the parameters of its score.

    Args:
        head: A built output layer.
        backbone: The rest of the model, which may share an embedding with the output layer.

    Example:

    >>> backbone = keras_drill.models.AWDLSTM(11, embedding_dim=4, units=5, num_layers=1)
    >>> head = keras_drill.TiedOutput(11, backbone.embedding)
    >>> _ = head(backbone(keras.ops.ones((1, 2), "int32")))
    >>> count_dedicated_parameters(head, backbone)  # a bias for each word
    11
    """
    shared = {id(variable) for variable in backbone.trainable_variables}
    dedicated = [v for v in head.trainable_variables if id(v) not in shared]
    count = sum(math.prod(variable.shape) for variable in dedicated)
    if isinstance(head.embedding, SenseEmbedding):
        count += sum(math.prod(v.shape) for v in head.trainable_variables if id(v) in shared)
        count -= head.vocabulary_size * head.embedding.output_dim
    return count


def output_parameter_table(configurations: Mapping[str, Sequence[int]]) -> str:
    """Formats the counts as a Markdown table with one row per configuration.

    Args:
        configurations: By name of the configuration,
            `(vocabulary_size, embedding_dim, hidden_dim, joint_dim, depth)`.
    """
    lines = [
        "| configuration | V | d | d_h | d_j | k | softmax | tied | bilinear | dual nonlinear | "
        "DRILL | tied < bilinear ≤ dual ≤ softmax |",
        "|---|" + "--:|" * 10 + ":-:|",
    ]
    for name, sizes in configurations.items():
        counts = count_output_parameters(*sizes)
        ordered = (
            counts["tied"] < counts["bilinear"] <= counts["dual nonlinear"] <= counts["softmax"]
        )
        numbers = (f"{number:,}" for number in (*sizes, *counts.values()))
        lines.append(f"| {name} | {' | '.join(numbers)} | {'yes' if ordered else 'no'} |")
    return "\n".join(lines)
