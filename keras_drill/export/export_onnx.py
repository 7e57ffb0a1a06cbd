"""Writing a Transformer as an ONNX file, by Keras' exporter."""

import os
from pathlib import Path
from typing import Any

import keras

from keras_drill.data import Tokenizer, Vocabulary
from keras_drill.decoding import LanguageModelStep
from keras_drill.export.model_card import ModelCard
from keras_drill.export.saved_model_version import new_version
from keras_drill.export.tokenizer_files import check_sides, save_tokenizer
from keras_drill.models import Transformer, TransformerLanguageBackbone


def export_onnx(
    model: Any,
    directory: str | os.PathLike,
    target: tuple[Tokenizer, Vocabulary],
    source: tuple[Tokenizer, Vocabulary] | None = None,
    *,
    version: int | None = None,
    card: ModelCard | None = None,
) -> Path:
    """Exports the forward pass of a Transformer to ONNX, for any output layer.

    `directory/<version>/model.onnx` maps ids of tokens to log-probabilities of all words. The input
    of a language model is `tokens`, int32 `[B, T]`. A model with a source has two int32 inputs,
    `source` `[B, S]` and `target` `[B, T]`. `source` ends with the end token. `tokens` and `target`
    begin with the start token, or with the end token if the vocabulary has no start token. Shorter
    sequences are padded at the end with the backbone's `pad_id`. The output is float32 `[B, T, V]`,
    the log-probabilities of the word after each position. Beam search is not part of the file.

    Shape letters: B sequences, T tokens, S tokens of a source, V words.

    The folder also contains `vocabulary.txt`, one word on each line in the order of ids, and the
    tokenizer as `export_ctranslate2` writes it. If there is a source, the folder contains these
    files for both sides, and the names begin with `source_` and `target_`.

    Output layers such as DRILL compute their labels (output embeddings) with a network. This
    network runs once, during the export, so the exported model is as fast as with weight tying.

    Args:
        model: A `keras_drill.SequenceToSequence` or a built `keras_drill.LanguageModel` around a
            `keras_drill.models.Transformer` or `TransformerLanguageBackbone`, in float32.
        directory: The model's folder. Created if missing.
        target: Pair of the tokenizer and the vocabulary of the targets, or of the text of a
            language model.
        source: Pair of the tokenizer and the vocabulary of the sources. `None` for a language
            model.
        version: A positive integer, different from existing versions. Defaults to one more than the
            highest version.
        card: A `keras_drill.export.ModelCard`, written as `model_card.md` and `model_card.json`, or
            `None`.

    Returns:
        The version's folder.

    Raises:
        ImportError: tf2onnx is not installed.
        FileExistsError: `version` exists.
        ValueError: Keras' exporter cannot convert the model, or an argument does not match the
            model.

    Example:

    >>> import onnxruntime
    >>> from keras_drill.data import Vocabulary, WhitespaceTokenizer
    >>> vocabulary = Vocabulary(["<pad>", "<unk>", "<eos>", "<sos>", "a", "house"])
    >>> words = WhitespaceTokenizer(), vocabulary
    >>> backbone = keras_drill.models.Transformer(6, 4, num_layers=1, num_heads=2)
    >>> head = keras_drill.DrillOutput(6, backbone.embedding)
    >>> model = keras_drill.SequenceToSequence(backbone, head)
    >>> directory = getfixture("tmp_path") / "de-en"
    >>> folder = keras_drill.export.export_onnx(model, directory, words, words)
    >>> session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    >>> source, target = np.array([[4, 5, 2]], "int32"), np.array([[3, 4, 5]], "int32")
    >>> [log_probs] = session.run(None, {"source": source, "target": target})
    >>> log_probs.shape
    (1, 3, 6)
    """
    _check_model(model)
    has_source = isinstance(model.backbone, Transformer)
    sides = check_sides(has_source, target, source)
    sizes = {"target": model.head.vocabulary_size}
    if has_source:
        sizes["source"] = model.backbone.source_vocabulary_size or model.backbone.vocabulary_size
    for name, (_, vocabulary) in sides.items():
        if len(vocabulary) != sizes[name]:
            raise ValueError(
                f"`{name}` must have a vocabulary of the model's {sizes[name]} words. "
                f"Received: {len(vocabulary)} words"
            )
    try:
        import tf2onnx  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Exporting to ONNX needs the library tf2onnx: pip install 'keras-drill[onnx]'. "
            f"Received: {error}"
        ) from error
    folded = type(model)(model.backbone, LanguageModelStep(model).head)
    with new_version(directory, version) as folder:
        folder.model.mkdir()
        folded.export(
            str(folder.model / "model.onnx"),
            format="onnx",
            verbose=False,
            input_signature=[_signature(has_source)],
        )
        for name, (tokenizer, vocabulary) in sides.items():
            prefix = f"{name}_" if has_source else ""
            save_tokenizer(tokenizer, folder.model, prefix)
            vocabulary.save(folder.model / f"{prefix}vocabulary.txt")
        if card is not None:
            card.write(folder.model)
    return folder.published


def _signature(has_source: bool) -> Any:
    names = ("source", "target") if has_source else ("tokens",)
    specs = {name: keras.InputSpec(shape=(None, None), dtype="int32", name=name) for name in names}
    return specs if has_source else specs["tokens"]


def _check_model(model: Any) -> None:
    # tf2onnx writes files that no program can load for the loops of Keras' recurrent layers.
    if type(model.backbone) not in (Transformer, TransformerLanguageBackbone):
        raise ValueError(
            "ONNX needs a model whose backbone is a keras_drill.models.Transformer or "
            "TransformerLanguageBackbone, as Keras' exporter cannot convert recurrent layers; "
            f"export other models as a SavedModel. Received: {type(model.backbone).__name__}"
        )
    if not model.built:
        raise ValueError("`model` must be built. Received: a model without weights")
    if model.backbone.compute_dtype != "float32":
        raise ValueError(
            "ONNX needs a model that computes in float32. Create the model again with the dtype "
            "policy 'float32', and copy the weights with `set_weights`. "
            f"Received: compute_dtype={model.backbone.compute_dtype!r}"
        )
