"""Progress for logs and pipes."""

import time

import keras

_SECONDS = 10


class ProgressLines(keras.callbacks.Callback):
    """Prints a line every ten seconds, where Keras' progress bar would print thousands."""

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch
        self._printed = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        if time.perf_counter() - self._printed >= _SECONDS:
            self._printed = time.perf_counter()
            self._print(f"batch {batch + 1}/{self.params['steps']}", logs)

    def on_epoch_end(self, epoch, logs=None):
        self._print("done", logs)

    def _print(self, what: str, logs: dict[str, float]) -> None:
        values = "  ".join(f"{name} {value:.4g}" for name, value in logs.items())
        print(f"epoch {self._epoch + 1}/{self.params['epochs']}  {what}  {values}", flush=True)
