"""Exports a language model for TensorFlow Serving."""

import os
from pathlib import Path
from typing import Any

from keras_drill.data import Tokenizer, Vocabulary
from keras_drill.decoding import Sampler
from keras_drill.export.asset_vocabulary import AssetVocabulary
from keras_drill.export.model_card import ModelCard
from keras_drill.export.narrow_weights import served_signatures
from keras_drill.export.saved_model_version import new_version, write_module
from keras_drill.export.sense_contexts import SenseContexts
from keras_drill.export.text_model import TextModel
from keras_drill.layers.cudnn import portable_kernels


def export_saved_model(
    model: Any,
    directory: str | os.PathLike,
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    *,
    version: int | None = None,
    sampler: Sampler | None = None,
    seed: int = 0,
    max_new_tokens: int = 50,
    k: int = 10,
    forbidden_tokens: Any = None,
    stop_strings: tuple[str, ...] = (),
    warmup_texts: tuple[str, ...] = ("",),
    weights: str = "float32",
    card: ModelCard | None = None,
    contexts: SenseContexts | None = None,
    unit: str = "line",
) -> Path:
    """Exports a language model as a SavedModel that takes and returns text.

    The model is written to `directory/<version>/` with these signatures, see `TextModel`:

    - `continue` (also `serving_default`), `sample`, `score`, `top_k` and `examples`;
    - `senses`, if words have several senses (`keras_drill.KernelizedBayesianSoftmax`);
    - `sense_contexts`, if `contexts` is given.

    The SavedModel contains only the parts that inference uses, without dropout and optimizer. The
    labels (output embeddings) are computed once, during the export, and stored as constants. The
    senses of each word are fixed, because only training moves senses between words. The vocabulary
    is an asset file.

    Loading the SavedModel requires TensorFlow, but neither Keras nor this package. If the tokenizer
    uses operations of tensorflow-text, loading also requires this library.

    The export writes to a hidden folder in `directory`, named `.<version>.*`, or `.next.*` without
    the argument `version`. When the model is complete, it is moved to the folder of its version. A
    killed export leaves the hidden folder. Servers ignore the hidden folder, and you can delete it.

    Args:
        model: A built `keras_drill.LanguageModel`.
        directory: The model's folder, such as `saved_models/<name>`. Created if missing.
        tokenizer: The tokenizer of the training, which splits and joins texts.
        vocabulary: The vocabulary of the training, with the model's words.
        version: A positive integer, different from existing versions. Defaults to one more than the
            highest version.
        sampler: `Sampler` that chooses the words of `continue`. Defaults to `GreedySampler()`.
        seed: Seed of `sampler`, from 0 to 2**32 - 1.
        max_new_tokens: Largest number of words that `continue` and `sample` add to a prompt.
        k: Number of words that `top_k` returns.
        forbidden_tokens: Ids of words that are never generated. Defaults to the unknown, start and
            pad tokens.
        stop_strings: Strings at which continuations end; see `TextModel`.
        warmup_texts: Texts that TensorFlow Serving sends through every signature before the model
            takes requests. If empty, no warm-up file is written.
        weights: Type of the stored weights, `"float32"`, `"bfloat16"`, `"float16"` or `"int8"`; see
            `keras_drill.export.NarrowWeights`.
        card: A `keras_drill.export.ModelCard`, or `None`. The card is written to the folder
            `assets.extra` of the version, as `model_card.md` and `model_card.json`.
        contexts: A `SenseContexts` with examples of each sense in a corpus, which `sense_contexts`
            returns, or `None`.
        unit: Whether an end token follows each `"line"` or each `"paragraph"` of a text, as in
            training; see `TextCodec`.

    Returns:
        The version's folder.

    Example:

    >>> import keras, keras_drill
    >>> from keras_drill.data import Vocabulary, WhitespaceTokenizer
    >>> backbone = keras_drill.models.AWDLSTM(5, embedding_dim=4, units=6, num_layers=1)
    >>> head = keras_drill.OutputLayer(5, embedding=backbone.embedding)
    >>> model = keras_drill.LanguageModel(backbone, head)
    >>> _ = model(keras.ops.zeros((1, 1), dtype="int32"))
    >>> vocabulary = Vocabulary(["<unk>", "<eos>", "the", "cat", "sat"])
    >>> directory = getfixture("tmp_path") / "cats"
    >>> folder = keras_drill.export.export_saved_model(
    ...     model, directory, WhitespaceTokenizer(), vocabulary, k=3
    ... )
    >>> folder.name, (folder / "assets" / "vocabulary.txt").read_text().split()
    ('1', ['<unk>', '<eos>', 'the', 'cat', 'sat'])
    >>> import tensorflow as tf
    >>> loaded = tf.saved_model.load(str(folder))
    >>> loaded.signatures["top_k"](tf.constant(["the cat"]))["words"].shape
    TensorShape([1, 3])
    """
    with new_version(directory, version) as folder:
        vocabulary.save(folder / "words" / "vocabulary.txt")
        module = TextModel(
            model,
            tokenizer,
            AssetVocabulary(vocabulary, folder / "words" / "vocabulary.txt"),
            sampler=sampler,
            seed=seed,
            max_new_tokens=max_new_tokens,
            k=k,
            forbidden_tokens=forbidden_tokens,
            stop_strings=stop_strings,
            contexts=contexts,
            unit=unit,
        )
        with portable_kernels(model.backbone):
            signatures = served_signatures(module, weights)
            write_module(signatures, module.codec, folder.model, warmup_texts, card)
    return folder.published
