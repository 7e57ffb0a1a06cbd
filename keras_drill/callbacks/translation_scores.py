from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_drill.metrics.text_scores import References, TextScores, score_texts


class TranslationScores(keras.callbacks.Callback):
    """Generates texts for validation sources after every epoch, and logs their BLEU and chrF.

    The callback adds the scores to the epoch's logs. Put the callback **before** those that read
    the logs, such as `EarlyStopping`, `ModelCheckpoint`, `CSVLogger` and `TensorBoard`. Put it
    **after** `NonMonotonicAveraging`, so that `translate` uses the averaged weights. Higher BLEU
    and chrF are better, which Keras cannot guess: use
    `EarlyStopping(monitor="val_bleu", mode="max")`.

    Generating texts takes longer than computing `val_loss`. A few hundred sentences and a greedy
    search are enough to follow training. `translate` must not use dropout, whose random numbers
    would change the training run. The searches of this package, such as `BeamSearch`, do not use
    dropout.

    Args:
        translate: Function that maps the list `sources` to a list with one text for each source,
            by the model with its current weights. Sources may have any form that `translate`
            accepts, for example strings or rows of ids.
        sources: The validation sources.
        references: For each source one reference, or a sequence of several references.
        scores: The scores to log, a list of `"bleu"`, `"bleu_1"`, `"chrf"`, `"exact_match"` and
            `"length_ratio"`, see `keras_drill.metrics.TextScores`. The logged names begin with
            `val_`, for example `val_bleu`.
        tokenize: sacrebleu's tokenizer for BLEU, see `keras_drill.metrics.score_texts`.
        lowercase: Whether to ignore the difference between upper and lower case.

    Attributes:
        hypotheses: The texts that `translate` returned after the last epoch; `None` before the
            first epoch ends.
        text_scores: All scores of these texts, with sacrebleu's signatures; `None` before the first
            epoch ends.

    Raises:
        ImportError: sacrebleu is not installed.

    Example:

    >>> import keras, keras_drill
    >>> import numpy as np
    >>> model = keras.Sequential([keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> callback = keras_drill.callbacks.TranslationScores(
    ...     lambda sources: [source.replace("Hund", "dog") for source in sources],
    ...     sources=["ein Hund", "der Hund"],
    ...     references=["a dog", "the dog"],
    ...     scores=("bleu_1", "chrf"),
    ... )
    >>> history = model.fit(np.ones((2, 3)), np.ones((2, 1)), verbose=0, callbacks=[callback])
    >>> history.history["val_bleu_1"], callback.hypotheses
    ([50.0], ['ein dog', 'der dog'])
    """

    def __init__(
        self,
        translate: Callable[[Sequence[Any]], Sequence[str]],
        sources: Sequence[Any],
        references: References,
        scores: Sequence[str] = ("bleu", "chrf"),
        tokenize: str = "13a",
        lowercase: bool = False,
    ):
        super().__init__()
        known = ("bleu", "bleu_1", "chrf", "exact_match", "length_ratio")
        if isinstance(scores, str) or not set(scores) <= set(known):
            raise ValueError(
                f"`scores` must be a list of names from {', '.join(known)}. "
                f"Received: scores={scores!r}"
            )
        if len(sources) != len(references):
            raise ValueError(
                "`sources` and `references` must have the same length. "
                f"Received: {len(sources)} sources and {len(references)} references"
            )
        # Raises errors about references, or a missing sacrebleu, before the first epoch.
        score_texts([""] * len(references), references, tokenize, lowercase)
        self.translate = translate
        self.sources = sources
        self.references = references
        self.scores = tuple(scores)
        self.tokenize = tokenize
        self.lowercase = lowercase
        self.hypotheses: list[str] | None = None
        self.text_scores: TextScores | None = None

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.hypotheses = list(self.translate(self.sources))
        self.text_scores = score_texts(
            self.hypotheses, self.references, self.tokenize, self.lowercase
        )
        if logs is not None:
            for name in self.scores:
                logs[f"val_{name}"] = getattr(self.text_scores, name)
