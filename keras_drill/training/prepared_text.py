"""The text of a run, ready to be trained and judged on."""

import dataclasses
import hashlib
from collections.abc import Sequence

import numpy as np

from keras_drill.data import (
    ContiguousBatches,
    Corpus,
    EncodedText,
    Tokenizer,
    Vocabulary,
    WhitespaceTokenizer,
    WordTokenizer,
)
from keras_drill.training.config import RunConfig
from keras_drill.training.errors import RunError
from keras_drill.training.run_folder import RunFolder

_TOKENIZERS = {"words": WordTokenizer, "whitespace": WhitespaceTokenizer}


@dataclasses.dataclass(frozen=True)
class PreparedText:
    """Text of a run, as token ids.

    Args:
        tokenizer: splits text into words.
        vocabulary: gives the words' ids.
        splits: token ids of "train" and, as far as the corpus has them, "valid" and "test".
    """

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    splits: dict[str, np.ndarray]

    @classmethod
    def prepare(cls, config: RunConfig, folder: RunFolder) -> "PreparedText":
        """Reads the text and counts its words, or reads the run's vocabulary when it has one."""
        corpus = Corpus(config.data.path)
        tokenizer = make_tokenizer(config)
        if folder.vocabulary_file.exists():
            vocabulary = Vocabulary.load(folder.vocabulary_file)
        elif config.data.vocabulary:
            vocabulary = Vocabulary.load(config.data.vocabulary)
        else:
            vocabulary = Vocabulary.build(
                corpus.train,
                tokenizer,
                max_size=config.data.max_vocabulary or None,
                min_count=config.data.min_count,
            )
        splits = {
            name: EncodedText.encode(lines, tokenizer, vocabulary).ids
            for name, lines in corpus.splits.items()
        }
        if "valid" not in splits:
            raise RunError(
                f"{config.data.path} has no validation text, which tells the best model; expected "
                "a file such as 'valid.txt' in the folder"
            )
        tokens = len(splits["train"])
        rows, length = config.data.batch_size, config.data.sequence_length
        if tokens < rows * length:
            raise RunError(
                f"the training text has {tokens:,} tokens, fewer than one batch of data.batch_size "
                f"x data.sequence_length = {rows} x {length} = {rows * length:,}; lower one of "
                "them, or give more text"
            )
        return cls(tokenizer, vocabulary, splits)

    def training_batches(self, config: RunConfig) -> ContiguousBatches:
        """Batches of the training text."""
        return ContiguousBatches(
            self.splits["train"],
            config.data.batch_size,
            config.data.sequence_length,
            variable_length=config.data.variable_length,
            first_token=self.vocabulary.end_id,
            seed=config.training.seed,
        )

    def evaluation_batches(self, config: RunConfig, split: str) -> ContiguousBatches:
        """Batches of a split with every token in them."""
        return evaluation_batches(config, self.splits[split], self.vocabulary)


def fingerprint_of_words(tokens: Sequence[str]) -> str:
    """Tells whether a checkpoint was made with these words."""
    return hashlib.sha256("\n".join(tokens).encode()).hexdigest()


def make_tokenizer(config: RunConfig) -> Tokenizer:
    """The tokenizer of a run."""
    return _TOKENIZERS[config.data.tokenizer]()


def evaluation_batches(
    config: RunConfig, ids: np.ndarray, vocabulary: Vocabulary
) -> ContiguousBatches:
    """Batches with every token of a text in them, of the size that the model was built for."""
    return ContiguousBatches(
        ids,
        config.data.batch_size,
        config.data.sequence_length,
        padding=True,
        first_token=vocabulary.end_id,
    )
