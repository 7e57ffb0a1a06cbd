"""Models with a preprocessor, which read for example strings."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np


class PreprocessedModel(keras.Model):
    """Base class for models with an optional `preprocessor`.

    `fit`, `evaluate`, `predict` and the corresponding methods for one batch apply the preprocessor.
    Calls of the model itself take tokens.

    A preprocessor is called as `preprocessor(x, y=y, sample_weight=sample_weight)` on a batch, and
    returns `x`, `(x, y)` or `(x, y, sample_weight)`, as in keras-hub.
    """

    preprocessor: Any = None

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Trains the model; see `keras.Model.fit`.

        With a `preprocessor`, `x` and the first item of `validation_data` are its inputs.
        """
        options = {
            "epochs": epochs,
            "verbose": verbose,
            "callbacks": callbacks,
            "class_weight": class_weight,
            **kwargs,
        }
        if self.preprocessor is None:
            return super().fit(
                x,
                y,
                batch_size=batch_size,
                validation_split=validation_split,
                validation_data=validation_data,
                shuffle=shuffle,
                sample_weight=sample_weight,
                **options,
            )
        validation_size = options.pop("validation_batch_size", None) or batch_size
        data = self._batches(x, y, sample_weight, batch_size)
        if validation_data is not None:
            held_x, held_y, weights = keras.utils.unpack_x_y_sample_weight(validation_data)
            validation_data = self._batches(held_x, held_y, weights, validation_size)
        elif validation_split:
            if not isinstance(data, PreprocessedRows):
                raise ValueError(
                    "`validation_split` must be 0 if `x` is a tf.data.Dataset. "
                    f"Received: validation_split={validation_split}"
                )
            data, validation_data = data.split(validation_split, validation_size)
        if isinstance(data, PreprocessedRows):
            data.shuffle = shuffle
        return super().fit(data, validation_data=validation_data, shuffle=False, **options)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Computes loss and metrics; see `keras.Model.evaluate`.

        With a `preprocessor`, `x` is its input.
        """
        # `fit` evaluates on data that is already preprocessed.
        if self.preprocessor is not None and not kwargs.get("_use_cached_eval_dataset"):
            x, y = self._batches(x, y, sample_weight, batch_size), None
            batch_size = sample_weight = None
        return super().evaluate(x, y, batch_size, verbose, sample_weight, **kwargs)

    def predict(self, x: Any, batch_size: int | None = None, **kwargs: Any) -> Any:
        """Computes outputs; see `keras.Model.predict`.

        With a `preprocessor`, `x` is its input.
        """
        if self.preprocessor is not None:
            x, batch_size = self._batches(x, None, None, batch_size), None
        return super().predict(x, batch_size, **kwargs)

    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, **kwargs: Any
    ) -> Any:
        """Trains on one batch; see `keras.Model.train_on_batch`."""
        return super().train_on_batch(*self._batch(x, y, sample_weight), **kwargs)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, **kwargs: Any) -> Any:
        """Computes loss and metrics of one batch; see `keras.Model.test_on_batch`."""
        return super().test_on_batch(*self._batch(x, y, sample_weight), **kwargs)

    def predict_on_batch(self, x: Any) -> Any:
        """Computes outputs for one batch; see `keras.Model.predict_on_batch`."""
        return super().predict_on_batch(self._batch(x, None, None)[0])

    def _batch(self, x, y, sample_weight) -> tuple:
        if self.preprocessor is None:
            return x, y, sample_weight
        rows = range(_num_rows(x))
        batch = preprocess(
            self.preprocessor, *(_take(data, rows) for data in (x, y, sample_weight))
        )
        return keras.utils.unpack_x_y_sample_weight(keras.tree.map_structure(np.asarray, batch))

    def _batches(self, x, y, sample_weight, batch_size):
        """Returns the batches of a `tf.data.Dataset`, or of rows, preprocessed as they are read."""
        if not hasattr(x, "element_spec"):
            return PreprocessedRows(self.preprocessor, x, y, sample_weight, batch_size)
        if not (y is sample_weight is batch_size is None):
            raise ValueError(
                "`y`, `sample_weight` and `batch_size` must be None if `x` is a tf.data.Dataset, "
                f"which contains them. Received: y of type {type(y).__name__}, sample_weight of "
                f"type {type(sample_weight).__name__}, batch_size={batch_size!r}, x={x!r}"
            )
        preprocessor = self.preprocessor
        return x.map(lambda *batch: preprocess(preprocessor, *batch))


class PreprocessedRows(keras.utils.PyDataset):
    """Dataset that preprocesses each batch when the batch is read.

    Args:
        preprocessor: As in `PreprocessedModel`.
        x, y, sample_weight: Arrays, or lists or dictionaries of arrays, with one entry per row;
            `y` and `sample_weight` may be `None`.
        batch_size: Number of rows of a batch; `None` is 32.
        rows: Indices of the rows to use; `None` is all.

    Attributes:
        shuffle: Whether rows are shuffled before the first epoch and after every epoch.
    """

    def __init__(self, preprocessor, x, y=None, sample_weight=None, batch_size=None, rows=None):
        super().__init__()
        self._preprocessor = preprocessor
        self._data = (x, y, sample_weight)
        self._batch_size = batch_size or 32
        self._rows = np.arange(_num_rows(x)) if rows is None else rows
        self._shuffle = False

    def split(self, share: float, batch_size: int | None) -> tuple:
        """Splits off the last `share` of the rows."""
        first = int(len(self._rows) * (1 - share))
        parts = (self._rows[:first], self._batch_size), (self._rows[first:], batch_size)
        return tuple(
            PreprocessedRows(self._preprocessor, *self._data, size, rows) for rows, size in parts
        )

    @property
    def shuffle(self) -> bool:
        return self._shuffle

    @shuffle.setter
    def shuffle(self, value: bool):
        self._shuffle = value
        self.on_epoch_end()

    def on_epoch_end(self) -> None:
        if self._shuffle:
            self._rows = np.random.permutation(self._rows)

    @property
    def num_batches(self) -> int:
        return -(-len(self._rows) // self._batch_size)

    def __getitem__(self, index: int) -> tuple:
        rows = self._rows[index * self._batch_size : (index + 1) * self._batch_size]
        batch = preprocess(self._preprocessor, *(_take(x, rows) for x in self._data))
        return keras.tree.map_structure(np.asarray, batch)


def preprocess(preprocessor: Callable, x: Any, y: Any = None, sample_weight: Any = None) -> tuple:
    """Applies a preprocessor to a batch. Returns `(x,)`, `(x, y)` or `(x, y, sample_weight)`."""
    batch = preprocessor(x, y=y, sample_weight=sample_weight)
    return batch if isinstance(batch, tuple) else (batch,)


def _num_rows(x) -> int:
    if isinstance(x, str | bytes) or not (hasattr(x, "__getitem__") and hasattr(x, "__len__")):
        raise ValueError(
            "With a `preprocessor`, `x` must be a list, an array, a dictionary of these, or a "
            "tf.data.Dataset of batches. To use other data, preprocess it yourself and set "
            f"`model.preprocessor = None`. Received: x={x!r}"
        )
    return _num_rows(next(iter(x.values()))) if isinstance(x, dict) else len(x)


def _take(x, rows):
    if isinstance(x, dict):
        return {name: _take(values, rows) for name, values in x.items()}
    if isinstance(x, list | tuple):
        return [x[row] for row in rows]
    if x is None:
        return None
    taken = np.asarray(x)[rows]
    if taken.dtype.kind not in "USO":
        return taken
    # Tokenizers take lists of strings, since arrays may contain bytes, as in TensorFlow.
    return [row.decode() if isinstance(row, bytes) else row for row in taken.tolist()]
