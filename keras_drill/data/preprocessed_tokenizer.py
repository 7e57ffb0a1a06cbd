"""A tokenizer with preprocessing steps."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence

import keras
import tensorflow as tf

from keras_drill.data.checks import check_is, shown
from keras_drill.data.lines import Lines, as_lines
from keras_drill.data.preprocessing import Preprocessing
from keras_drill.data.tokenizer import Tokenizer, as_text


@keras.saving.register_keras_serializable(package="keras_drill")
class PreprocessedTokenizer(Tokenizer):
    """Tokenizer that preprocesses text first, and whose `detokenize` undoes the preprocessing.

    The steps are a part of the tokenizer and of its configuration, so training and inference
    preprocess text in the same way. If a step cannot run in graphs (`runs_in_graphs` is false), the
    tokenizer cannot either. Exported models then contain only the inner `tokenizer`. Programs that
    call such a model must call `preprocess` on the input and `undo` on the output.

    Args:
        preprocessing: The steps, a list of `Preprocessing` objects in the order of application.
        tokenizer: The inner tokenizer, for the output of the last step. Train this tokenizer on
            preprocessed text; see `PreprocessedLines`.

    Raises:
        ValueError: An argument has a wrong type.

    Example:

    >>> from keras_drill.data import Lowercase, MosesTokenization
    >>> from keras_drill.data import PreprocessedTokenizer, WhitespaceTokenizer
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
        self.preprocessing = _steps(preprocessing)
        check_is("tokenizer", tokenizer, Tokenizer, "a `Tokenizer`")
        self.tokenizer = tokenizer

    @property
    def runs_in_graphs(self) -> bool:
        steps = all(step.runs_in_graphs for step in self.preprocessing)
        return steps and self.tokenizer.runs_in_graphs

    def tokenize(self, text: tf.Tensor) -> tf.Tensor | tf.RaggedTensor:
        return self.tokenizer.tokenize(self.preprocess(text))

    def detokenize(self, words: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        return self.undo(self.tokenizer.detokenize(words))

    def preprocess(self, text: tf.Tensor) -> tf.Tensor:
        """Applies all preprocessing steps to `text`, strings of any shape.

        `tokenize` calls this method. Call it yourself before a model that was exported with only
        the inner `tokenizer`.
        """
        for step in self.preprocessing:
            text = step(text)
        return as_text(text)

    def undo(self, text: tf.Tensor) -> tf.Tensor:
        """Undoes all preprocessing steps, the last one first, in `text`, strings of any shape.

        `detokenize` calls this method. Call it yourself on the output of a model that was exported
        with only the inner `tokenizer`.
        """
        for step in reversed(self.preprocessing):
            text = step.undo(text)
        return as_text(text)

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
    """Preprocessed lines of a text, for training the tokenizer of a `PreprocessedTokenizer`.

    Args:
        lines: The lines of a text, or a list of strings.
        preprocessing: The preprocessing steps, as for `PreprocessedTokenizer`.

    Example:

    >>> from keras_drill.data import Lowercase, PreprocessedLines, TextLines
    >>> path = getfixture("tmp_path") / "a.txt"
    >>> _ = path.write_text("The Cat\\nSAT\\n")
    >>> list(PreprocessedLines(TextLines(path), [Lowercase()]))
    [b'the cat', b'sat']
    """

    def __init__(
        self, lines: Lines | Iterable[str | bytes], preprocessing: Sequence[Preprocessing]
    ):
        self.lines = as_lines(lines)
        self.preprocessing = _steps(preprocessing)

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


def _steps(preprocessing: Sequence[Preprocessing]) -> tuple[Preprocessing, ...]:
    """Checks the steps. Returns a tuple, since `tf.Module` would wrap a list."""
    steps = tuple(preprocessing) if isinstance(preprocessing, Iterable) else (preprocessing,)
    if not all(isinstance(step, Preprocessing) for step in steps):
        raise ValueError(
            "`preprocessing` must be `Preprocessing` objects, such as `[Lowercase()]`. Received: "
            f"preprocessing={shown(preprocessing)}"
        )
    return steps
