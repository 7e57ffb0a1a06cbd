"""Exports a Transformer in the format of CTranslate2."""

import os
from pathlib import Path
from typing import Any

from keras_drill.data import Tokenizer, Vocabulary
from keras_drill.export.ctranslate2_spec import make_spec
from keras_drill.export.model_card import ModelCard
from keras_drill.export.saved_model_version import new_version
from keras_drill.export.tokenizer_files import check_sides, save_tokenizer
from keras_drill.models import Transformer


def export_ctranslate2(
    model: Any,
    directory: str | os.PathLike,
    target: tuple[Tokenizer, Vocabulary],
    source: tuple[Tokenizer, Vocabulary] | None = None,
    *,
    version: int | None = None,
    quantization: str | None = None,
    max_length: int = 1024,
    card: ModelCard | None = None,
) -> Path:
    """Exports a Transformer for CTranslate2, a fast engine for inference in C++.

    The model is written to `directory/<version>/`. `ctranslate2.Translator` loads a
    `SequenceToSequence`, and `ctranslate2.Generator` loads a `LanguageModel`. CTranslate2 takes and
    returns tokens and not texts, so the folder also contains the tokenizers. `tokenizer.json` is
    the Keras config of a tokenizer, and `tokenizer.model` the model of a SentencePiece tokenizer.
    If there is a source, both sides have these files, with names that begin with `source_` or
    `target_`.

    Output layers such as DRILL compute their labels (output embeddings) with a network. This
    network runs once, during the export, so the exported model is as fast as with weight tying.

    Without quantization, the exported model has the log-probabilities of the original model, up to
    float32 rounding.

    Args:
        model: A `keras_drill.SequenceToSequence` or a built `keras_drill.LanguageModel` around a
            `keras_drill.models.Transformer` or `TransformerLanguageBackbone`. The output layer must
            be a softmax over inner products of hidden states and labels, such as
            `keras_drill.SoftmaxOutput`, `TiedOutput`, `BilinearOutput`, or `DrillOutput` with
            `dual=False`.
        directory: The model's folder. Created if missing.
        target: Pair of the tokenizer and the vocabulary of the targets, or of the text of a
            language model.
        source: Pair of the tokenizer and the vocabulary of the sources. `None` for a language
            model. Both vocabularies must have the same unknown token and the same end token.
        version: A positive integer, different from existing versions. Defaults to one more than the
            highest version.
        quantization: CTranslate2's name of the type of the stored weights, such as `"int8"`,
            `"int8_float16"`, `"int16"` or `"float16"`. `None` is float32.
        max_length: Number of positions that the exported model can read or write. Ignored for
            models with learned positions, whose number is the limit.
        card: A `keras_drill.export.ModelCard`, written as `model_card.md` and `model_card.json`, or
            `None`.

    Returns:
        The version's folder.

    Raises:
        ImportError: ctranslate2 is not installed.
        FileExistsError: `version` exists.
        ValueError: CTranslate2 does not support a part of the model, or an argument does not match
            the model.

    Example:

    >>> from keras_drill.data import Vocabulary, WhitespaceTokenizer
    >>> vocabulary = Vocabulary(["<pad>", "<unk>", "<eos>", "<sos>", "a", "house"])
    >>> words = WhitespaceTokenizer(), vocabulary
    >>> backbone = keras_drill.models.Transformer(6, 4, num_layers=1, num_heads=2)
    >>> head = keras_drill.DrillOutput(6, backbone.embedding)
    >>> model = keras_drill.SequenceToSequence(backbone, head)
    >>> directory = getfixture("tmp_path") / "de-en"
    >>> folder = keras_drill.export.export_ctranslate2(model, directory, words, words)
    >>> import ctranslate2
    >>> translator = ctranslate2.Translator(str(folder))
    >>> [found] = translator.translate_batch([["ein", "Haus"]], beam_size=5, length_penalty=0)
    >>> len(found.hypotheses)
    1
    """
    spec = make_spec(model, max_length)
    has_source = isinstance(model.backbone, Transformer)
    sides = check_sides(has_source, target, source)
    _register_words(spec, {name: vocabulary for name, (_, vocabulary) in sides.items()})
    spec.validate()
    spec.optimize(quantization)
    with new_version(directory, version) as folder:
        folder.model.mkdir()
        spec.save(str(folder.model))
        for name, (tokenizer, _) in sides.items():
            save_tokenizer(tokenizer, folder.model, f"{name}_" if has_source else "")
        if card is not None:
            card.write(folder.model)
    return folder.published


def _register_words(spec: Any, vocabularies: dict[str, Vocabulary]) -> None:
    """Adds the vocabularies and their special tokens to a specification."""
    target = vocabularies["target"]
    tables = {"target": spec.decoder.embeddings.weight}
    if "source" in vocabularies:
        tables["source"] = spec.encoder.embeddings[0].weight
    for name, vocabulary in vocabularies.items():
        if len(vocabulary) != len(tables[name]):
            raise ValueError(
                f"`{name}` must have a vocabulary of the model's {len(tables[name])} words. "
                f"Received: {len(vocabulary)} words"
            )
        special = vocabulary.unknown_token, vocabulary.end_token
        if special != (target.unknown_token, target.end_token):
            raise ValueError(
                "The vocabularies of `source` and `target` must have the same unknown token and "
                f"the same end token. Received: {special} in `{name}`, "
                f"{(target.unknown_token, target.end_token)} in `target`"
            )
    start = target.end_token if target.start_id is None else target.start_token
    spec.config.unk_token = target.unknown_token
    spec.config.bos_token = start
    spec.config.eos_token = target.end_token
    if "source" in vocabularies:
        spec.register_source_vocabulary(_words_of_texts(vocabularies["source"]))
        spec.register_target_vocabulary(_words_of_texts(target))
        spec.config.decoder_start_token = start
        spec.config.add_source_eos = True
    else:
        spec.register_vocabulary(_words_of_texts(target))


def _words_of_texts(vocabulary: Vocabulary) -> list[str]:
    """The words, with a space behind the pad token: in texts it is an unknown word."""
    pad = vocabulary.pad_token
    if pad in (vocabulary.unknown_token, vocabulary.end_token, vocabulary.start_token):
        return list(vocabulary.tokens)
    return [f"{pad} " if token == pad else token for token in vocabulary.tokens]
