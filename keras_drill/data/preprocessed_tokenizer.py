"""A tokenizer with steps in front of it."""

import hashlib
import json
from collections.abc import Iterator, Sequence

import keras
import tensorflow as tf

from keras_drill.data.lines import Lines
from keras_drill.data.preprocessing import Preprocessing
from keras_drill.data.tokenizer import Tokenizer


@keras.saving.register_keras_serializable(package="keras_drill")
class PreprocessedTokenizer(Tokenizer):
    """Preprocesses text, then cuts it into words; and the other way round.

    The steps are a part of the tokenizer and of its configuration: wherever it goes, text is
    treated alike. Where a step cannot run in graphs (`runs_in_graphs` is false), neither can the
    whole: exported models then take `tokenizer` alone, and their callers `preprocess` and `undo`.

    Args:
        preprocessing: The steps, in the order in which text goes through them.
        tokenizer: Gets what comes out of the last one. It should have been trained on such text:
            see `PreprocessedLines`.

    Raises:
        ValueError: One of them is something else.

    Example:

    >>> from keras_drill.data import Lowercase, MosesTokenization, WhitespaceTokenizer
    >>> steps = [Lowercase(), MosesTokenization("en", escape=False)]
    >>> words = WhitespaceTokenizer(tidy=False)
    >>> tokenizer = PreprocessedTokenizer(steps, words)
    >>> words = tokenizer.tokenize("It's HERE!")
    >>> words.numpy().tolist()
    [b'it', b"'s", b'here', b'!']
    >>> tokenizer.detokenize(words).numpy()
    b"it's here!"
    """

    def __init__(self, preprocessing: Sequence[Preprocessing], tokenizer: Tokenizer):
        super().__init__(name="preprocessed_tokenizer")
        self.preprocessing = tuple(preprocessing)  # a tuple: tf.Module would wrap a list
        self.tokenizer = tokenizer
        for step in self.preprocessing:
            if not isinstance(step, Preprocessing):
                raise ValueError(
                    "`preprocessing` must be `Preprocessing` objects. Received: "
                    f"preprocessing={preprocessing!r}"
                )
        if not isinstance(tokenizer, Tokenizer):
            raise ValueError(
                f"`tokenizer` must be a `Tokenizer`. Received: tokenizer={tokenizer!r}"
            )

    @property
    def runs_in_graphs(self) -> bool:
        steps = all(step.runs_in_graphs for step in self.preprocessing)
        return steps and self.tokenizer.runs_in_graphs

    def tokenize(self, text: tf.Tensor) -> tf.Tensor | tf.RaggedTensor:
        return self.tokenizer.tokenize(self.preprocess(text))

    def detokenize(self, words: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        return self.undo(self.tokenizer.detokenize(words))

    def preprocess(self, text: tf.Tensor) -> tf.Tensor:
        """The text as `tokenizer` gets it; strings of any shape."""
        for step in self.preprocessing:
            text = step(text)
        return tf.convert_to_tensor(text, tf.string)

    def undo(self, text: tf.Tensor) -> tf.Tensor:
        """Readable text of preprocessed text; strings of any shape."""
        for step in reversed(self.preprocessing):
            text = step.undo(text)
        return tf.convert_to_tensor(text, tf.string)

    def get_config(self) -> dict:
        serialize = keras.saving.serialize_keras_object
        return {
            "preprocessing": [serialize(step) for step in self.preprocessing],
            "tokenizer": serialize(self.tokenizer),
        }

    @classmethod
    def from_config(cls, config: dict) -> "PreprocessedTokenizer":
        deserialize = keras.saving.deserialize_keras_object
        steps = [deserialize(step) for step in config["preprocessing"]]
        return cls(steps, deserialize(config["tokenizer"]))


class PreprocessedLines(Lines):
    """Lines as a tokenizer behind some preprocessing gets them, to train it on.

    Args:
        lines: The lines of a text.
        preprocessing: The steps, in the order in which the lines go through them.

    Example:

    >>> from keras_drill.data import Lowercase, TextLines
    >>> path = getfixture("tmp_path") / "a.txt"
    >>> _ = path.write_text("The Cat\\nSAT\\n")
    >>> list(PreprocessedLines(TextLines(path), [Lowercase()]))
    [b'the cat', b'sat']
    """

    def __init__(self, lines: Lines, preprocessing: Sequence[Preprocessing]):
        self.lines = lines
        self.preprocessing = tuple(preprocessing)

    def blocks(self, size: int = 4096) -> Iterator[list[bytes]]:
        for block in self.lines.blocks(size):
            text = tf.constant(block)
            for step in self.preprocessing:
                text = step(text)
            yield text.numpy().tolist()

    def fingerprint(self) -> str:
        steps = [keras.saving.serialize_keras_object(step) for step in self.preprocessing]
        parts = json.dumps([self.lines.fingerprint(), steps], sort_keys=True)
        return hashlib.sha256(parts.encode()).hexdigest()
