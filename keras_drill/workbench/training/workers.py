"""Communication between the worker processes of a distributed training."""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, cast

import numpy as np
import tensorflow as tf

from keras_drill.distribute import is_chief
from keras_drill.workbench.tasks.errors import RunError, exit_status_of

Result = TypeVar("Result")
# Errors that TensorFlow raises for a step in which a worker is missing.
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.InternalError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,
)


class WorkerFailed(RunError):
    """Raised on workers without an error of their own if another worker failed.

    Args:
        worker: Number of the first worker that failed.
        exit_status: Exit status of that worker's program.
    """

    def __init__(self, worker: int, exit_status: int):
        super().__init__(
            f"worker {worker} has failed (the chief is worker 0); fix the error that this worker "
            "has printed, and start all workers again"
        )
        self.exit_status = exit_status


class Workers:
    """Operations that all workers of a distribution strategy do together.

    All workers must call the same methods in the same order. Strategies without worker processes
    have a single worker.

    Args:
        strategy: A strategy from `keras_drill.distribute.strategy`.

    Attributes:
        strategy: The strategy.
        number: Number of workers.
        is_chief: Whether this worker is the chief, which writes files and shows progress.

    Example:

    >>> workers = Workers(keras_drill.distribute.strategy("none"))
    >>> workers.number, workers.is_chief
    (1, True)
    >>> workers.gather([2.0, 3.0])
    array([[2., 3.]])
    """

    def __init__(self, strategy: tf.distribute.Strategy):
        self.strategy = strategy
        self.is_chief = is_chief(strategy)
        resolver = strategy.cluster_resolver
        several = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        jobs = resolver.cluster_spec().as_dict() if several else {}
        self.number = sum(len(jobs.get(job, ())) for job in ("chief", "worker")) or 1
        self._all_gather = tf.function(self._gather_rows, reduce_retracing=True)

    @property
    def num_replicas(self) -> int:
        """Number of replicas of all workers."""
        return self.strategy.num_replicas_in_sync

    @property
    def first_replica(self) -> int:
        """Index of this worker's first replica among the replicas of all workers."""
        if self.number == 1:
            return 0
        index = self.strategy.cluster_resolver.task_id
        jobs = self.strategy.cluster_resolver.cluster_spec().jobs
        if "chief" in jobs and not self.is_chief:
            index += 1
        return index * (self.num_replicas // self.number)

    def gather(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """Gathers the values of all workers.

        Args:
            values: This worker's values, `[N]`.

        Returns:
            Float64 `[workers, N]`, the chief's values first.
        """
        values = np.asarray(values, "float64")
        if self.number == 1:
            return values[None]
        rows = self._all_gather(tf.constant(values)).numpy()
        return rows[:: self.num_replicas // self.number]

    def _gather_rows(self, values):
        def gather(row):
            return tf.distribute.get_replica_context().all_gather(row[None], axis=0)

        gathered = self.strategy.run(gather, (values,))
        return self.strategy.experimental_local_results(gathered)[0]

    def wait_until_known(self) -> None:
        """Waits until all workers have received the values of the last `gather`.

        A worker must call this method before it ends, since others may still read its values.
        """
        if self.number > 1:
            with contextlib.suppress(*_LOST):  # a worker that has ended had received the values
                self.gather([0])

    def together(self, function: Callable[[], Result]) -> Result:
        """Runs a function on every worker. If it fails on one worker, all workers raise an error.

        Args:
            function: A function that does not wait for other workers.

        Returns:
            The result of `function` on this worker.

        Raises:
            WorkerFailed: `function` failed on another worker only. An error on this worker is
                raised unchanged.
        """
        error = None
        try:
            result = function()
        except Exception as caught:
            error = caught
        if self.number > 1:
            statuses = self.gather([0 if error is None else exit_status_of(error)])[:, 0]
            if statuses.any():
                self.wait_until_known()
                if error is None:
                    worker = int(np.flatnonzero(statuses)[0])
                    raise WorkerFailed(worker, int(statuses[worker]))
        if error is not None:
            raise error
        return result

    def by_chief(self, function: Callable[[], Result]) -> Result:
        """Runs a function on the chief, and returns its result on all workers.

        Args:
            function: A function with a result that JSON can express.

        Raises:
            WorkerFailed: `function` failed. The chief itself raises the error of `function`.
        """
        result = self.together(function if self.is_chief else lambda: None)
        if self.number == 1:
            return cast(Result, result)
        told = json.dumps(result).encode()
        length = int(self.gather([len(told)])[0, 0])
        padded = np.frombuffer(told.ljust(length)[:length], np.uint8)
        return json.loads(self.gather(padded)[0].astype(np.uint8).tobytes())

    def check_same(self, what: str, fingerprint: str) -> None:
        """Raises `RunError` if the fingerprint of a worker differs from the chief's.

        Args:
            what: Description of a difference, for the message, such as "different texts".
            fingerprint: Fingerprint of this worker's data.
        """
        digest = int(hashlib.sha256(fingerprint.encode()).hexdigest()[:12], 16)
        found = self.gather([digest])[:, 0]
        if (found != found[0]).any():
            different = int(np.flatnonzero(found != found[0])[0])
            self.wait_until_known()
            raise RunError(
                f"worker {different} has {what} than the chief: data and options must be the same "
                "on all workers"
            )

    @contextlib.contextmanager
    def detect_lost_workers(self) -> Iterator[None]:
        """Context manager that raises `RunError` if a training step fails without another worker.

        Without an error, the context ends when all workers have reached its end.
        """
        try:
            yield
        except _LOST as error:
            if self.number == 1:
                raise
            raise RunError(
                "another worker has ended or cannot be reached; start all workers again to resume "
                f"from the last checkpoint ({type(error).__name__})"
            ) from error
        self.wait_until_known()
