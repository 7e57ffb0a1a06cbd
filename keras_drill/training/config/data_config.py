"""Options of the text and of its batches."""

import dataclasses

from keras_drill.training.config.option import option


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """Section `[data]`: which text, which words, which batches."""

    path: str = option(
        "", "a text file, or a folder with train, valid and test text", may_change=True
    )
    tokenizer: str = option(
        "words",
        '"words" for raw text, "whitespace" for text that is already cut into words',
        choices=("words", "whitespace"),
    )
    vocabulary: str = option(
        "", "vocabulary file, one word per line; empty: counted in the training text"
    )
    max_vocabulary: int = option(0, "most words to keep, the most frequent ones; 0: all", minimum=0)
    min_count: int = option(1, "how often a word must occur to be kept", minimum=1)
    batch_size: int = option(20, "rows of text that are read side by side", minimum=1)
    sequence_length: int = option(70, "tokens per step of backpropagation through time", minimum=1)
    variable_length: bool = option(True, "vary that length at random, as AWD-LSTM does")
