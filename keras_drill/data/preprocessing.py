"""Preprocessing steps that run before tokenization, and that `detokenize` undoes."""

import abc
import functools
import re
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from keras_drill.data.checks import check_symbols
from keras_drill.data.tokenizer import as_text

NORMALIZATIONS = ("NFC", "NFD", "NFKC", "NFKD")


class Preprocessing(abc.ABC):
    """Base class for preprocessing steps from text to text, for a `PreprocessedTokenizer`.

    Subclasses define `__call__`, and may define `undo` and `get_config`.

    Attributes:
        runs_in_graphs: Whether the step can run in `tf.function`, tf.data and SavedModels. `True`
            by default. Subclasses that run only in Python set `False`, and raise a `ValueError` in
            graphs.
    """

    runs_in_graphs = True

    @abc.abstractmethod
    def __call__(self, text: tf.Tensor) -> tf.Tensor:
        """Returns the preprocessed text, a string tensor of the shape of `text`.

        Args:
            text: Tensor of UTF-8 strings, of any shape.
        """

    def undo(self, text: tf.Tensor) -> tf.Tensor:
        """Converts preprocessed text back to readable text as far as possible.

        By default, the method returns the text unchanged.

        Args:
            text: String tensor of any shape. The result has the same shape.
        """
        return as_text(text)

    def get_config(self) -> dict:
        """Returns the constructor arguments, from which `from_config` makes an equal step; `{}` by
        default.
        """
        return {}

    @classmethod
    def from_config(cls, config: dict) -> "Preprocessing":
        return cls(**config)


@keras.saving.register_keras_serializable(package="keras_drill")
class UnicodeNormalization(Preprocessing):
    """Converts text to a Unicode normal form, as a step of a `PreprocessedTokenizer`.

    `"NFC"` joins a letter and its accents into one character, and `"NFD"` separates them. Both look
    the same. `"NFKC"` also joins, `"NFKD"` also separates, and both replace `ﬁ` by `fi` and
    full-width letters by ordinary ones. Bytes that are not UTF-8 become U+FFFD, the replacement
    character.

    Args:
        form: `"NFC"`, `"NFD"`, `"NFKC"` or `"NFKD"`.

    Example:

    >>> from keras_drill.data import UnicodeNormalization
    >>> UnicodeNormalization("NFKC")("ﬁne e\\u0301tude").numpy().decode()
    'fine étude'

    References:
        - [Unicode Standard Annex 15](https://www.unicode.org/reports/tr15)
    """

    def __init__(self, form: str = "NFC"):
        if form not in NORMALIZATIONS:
            raise ValueError(f"`form` must be one of {NORMALIZATIONS}. Received: form={form!r}")
        self.form = form

    def __call__(self, text: tf.Tensor) -> tf.Tensor:
        return tf_text.normalize_utf8(_valid(text), self.form)

    def get_config(self) -> dict:
        return {"form": self.form}


@keras.saving.register_keras_serializable(package="keras_drill")
class Lowercase(Preprocessing):
    """Converts text to lower case, as a step of a `PreprocessedTokenizer`.

    Letters of every script are converted. Bytes that are not UTF-8 become U+FFFD, the replacement
    character.

    Example:

    >>> from keras_drill.data import Lowercase
    >>> Lowercase()("ÉTÉ").numpy().decode()
    'été'
    """

    def __call__(self, text: tf.Tensor) -> tf.Tensor:
        return tf.strings.lower(_valid(text), encoding="utf-8")


class _MosesScript(Preprocessing):
    """Base class for the scripts of Moses, by the sacremoses library, which runs in Python only."""

    runs_in_graphs = False

    def __init__(self, language: str):
        if not (isinstance(language, str) and language.isalpha() and language.islower()):
            raise ValueError(
                "`language` must be the code of a language, such as 'de'. "
                f"Received: language={language!r}"
            )
        try:
            import sacremoses
        except ImportError as error:
            raise ImportError(
                f"{type(self).__name__} needs the sacremoses library: "
                f"pip install keras_drill[translation]. Received: {error}"
            ) from error
        self.language = language
        self._library = sacremoses

    def _in_python(self, function: Callable[[str], str], text: tf.Tensor) -> tf.Tensor:
        if not tf.executing_eagerly():
            raise ValueError(
                f"{type(self).__name__} runs in Python and cannot be in a graph, such as tf.data "
                "or an exported model. Use the inner tokenizer, `PreprocessedTokenizer.tokenizer`, "
                "in the graph, and `preprocess` and `undo` outside of the graph; or train on raw "
                "text with `SentencePieceTokenizer`, which needs no such step. "
                f"Received: {text}"
            )
        texts = as_text(text).numpy()
        flat = [function(one.decode(errors="replace")) for one in np.ravel(texts)]
        return tf.reshape(tf.constant(flat, tf.string), np.shape(texts))

    def get_config(self) -> dict:
        return {"language": self.language}


@keras.saving.register_keras_serializable(package="keras_drill")
class MosesPunctuation(_MosesScript):
    """Normalizes quotes, dashes and spaces, as `normalize-punctuation.perl` of Moses does.

    Moses is a translation system. This step of a `PreprocessedTokenizer` runs only in Python, not
    in graphs (`tf.function`, tf.data, SavedModels), and needs
    `pip install keras_drill[translation]`. `undo` returns the text unchanged.

    Args:
        language: Code of the language, such as `"de"`.

    Example:

    >>> from keras_drill.data import MosesPunctuation
    >>> MosesPunctuation("en")("“It’s”").numpy()
    b'"It\\'s"'
    """

    def __init__(self, language: str):
        super().__init__(language)
        self._normalizer = self._library.MosesPunctNormalizer(language)

    def __call__(self, text: tf.Tensor) -> tf.Tensor:
        return self._in_python(self._normalizer.normalize, text)


@keras.saving.register_keras_serializable(package="keras_drill")
class MosesTokenization(_MosesScript):
    """Puts spaces around punctuation, as `tokenizer.perl` of Moses does; `undo` removes them.

    Many published translation corpora and scores use this script of the translation system Moses.
    This step of a `PreprocessedTokenizer` runs only in Python, not in graphs (`tf.function`,
    tf.data, SavedModels), and needs `pip install keras_drill[translation]`.

    Args:
        language: Code of the language, such as `"de"`. Abbreviations of the language keep their
            full stop. Languages without a list of abbreviations in Moses use the English list.
        aggressive_dashes: Whether to split words at hyphens, which become `@-@`.
        escape: Whether to write `& | < > ' " [ ]` as entities such as `&amp;`.
        symbols: Words that are not split, for example `__eou__`. The text between symbols is
            processed separately.

    Example:

    >>> from keras_drill.data import MosesTokenization
    >>> moses = MosesTokenization("en")
    >>> text = moses("It's well-known, e.g. here.")
    >>> text.numpy()
    b'It &apos;s well-known , e.g. here .'
    >>> moses.undo(text).numpy()
    b"It's well-known, e.g. here."

    References:
        - [Koehn et al., 2007](https://aclanthology.org/P07-2045)
    """

    def __init__(
        self,
        language: str,
        aggressive_dashes: bool = False,
        escape: bool = True,
        symbols: Sequence[str] = (),
    ):
        super().__init__(language)
        self.symbols = check_symbols(symbols)
        self.aggressive_dashes = aggressive_dashes
        self.escape = escape
        self._tokenizer = self._library.MosesTokenizer(language)
        self._detokenizer = self._library.MosesDetokenizer(language)

    def __call__(self, text: tf.Tensor) -> tf.Tensor:
        return self._in_python(functools.partial(self._around_symbols, self._tokenize), text)

    def undo(self, text: tf.Tensor) -> tf.Tensor:
        return self._in_python(functools.partial(self._around_symbols, self._detokenize), text)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "aggressive_dashes": self.aggressive_dashes,
            "escape": self.escape,
            "symbols": list(self.symbols),
        }

    def _around_symbols(self, function: Callable[[str], str], text: str) -> str:
        if not self.symbols:
            return function(text)
        pattern = "|".join(re.escape(symbol) for symbol in self.symbols)
        parts = re.split(f"({pattern})", text)  # every second one is a symbol
        parts[::2] = [function(part) for part in parts[::2]]
        return " ".join(part for part in parts if part)

    def _tokenize(self, text: str) -> str:
        return self._tokenizer.tokenize(
            text,
            aggressive_dash_splits=self.aggressive_dashes,
            escape=self.escape,
            return_str=True,
        )

    def _detokenize(self, text: str) -> str:
        return self._detokenizer.detokenize(text.split(), unescape=self.escape)


def _valid(text: tf.Tensor) -> tf.Tensor:
    return tf.strings.unicode_transcode(as_text(text), "UTF-8", "UTF-8", errors="replace")
