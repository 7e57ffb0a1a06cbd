"""What the processes of a training tell each other between steps."""

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
# What TensorFlow says of a step in which a worker is missing.
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.InternalError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,
)


class WorkerFailed(RunError):
    """Raised on the workers that went well, where another did not.

    Args:
        worker: The number of the first that failed.
        exit_status: That of its program.
    """

    def __init__(self, worker: int, exit_status: int):
        super().__init__(
            f"worker {worker} has failed, and says why (the chief is worker 0); start all workers "
            "again when that is mended"
        )
        self.exit_status = exit_status


class Workers:
    """The workers of a strategy; one alone where there are no others.

    Every method must be called by all of them, in the same order, like a step.

    Args:
        strategy: Any of `keras_drill.distribute.strategy`.

    Attributes:
        strategy: As given.
        number: How many workers there are.
        is_chief: Whether this one writes files and shows progress.

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
        """Replicas of all workers."""
        return self.strategy.num_replicas_in_sync

    @property
    def first_replica(self) -> int:
        """Number of this worker's first replica among those of all."""
        if self.number == 1:
            return 0
        index = self.strategy.cluster_resolver.task_id
        jobs = self.strategy.cluster_resolver.cluster_spec().jobs
        if "chief" in jobs and not self.is_chief:
            index += 1
        return index * (self.num_replicas // self.number)

    def gather(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """What all workers have: float64 `[workers, N]` from `[N]` of each, the chief's first."""
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
        """Returns when all workers have what was gathered last, so that this one may end.

        One that ends sooner takes away what others are still fetching from it.
        """
        if self.number > 1:
            with contextlib.suppress(*_LOST):  # who is gone had it
                self.gather([0])

    def together(self, function: Callable[[], Result]) -> Result:
        """Runs `function` on every worker; where one of them fails, all do.

        Args:
            function: What to do; it must not wait for other workers itself.

        Raises:
            WorkerFailed: Another worker has failed. This one's own error is raised as it is.
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
        """Runs `function` on the chief alone; all get its result, which JSON must hold."""
        result = self.together(function if self.is_chief else lambda: None)
        if self.number == 1:
            return cast(Result, result)
        told = json.dumps(result).encode()
        length = int(self.gather([len(told)])[0, 0])
        padded = np.frombuffer(told.ljust(length)[:length], np.uint8)
        return json.loads(self.gather(padded)[0].astype(np.uint8).tobytes())

    def check_same(self, what: str, fingerprint: str) -> None:
        """Raises `RunError` where workers differ in what the fingerprint is of."""
        digest = int(hashlib.sha256(fingerprint.encode()).hexdigest()[:12], 16)
        found = self.gather([digest])[:, 0]
        if (found != found[0]).any():
            different = int(np.flatnonzero(found != found[0])[0])
            self.wait_until_known()
            raise RunError(
                f"worker {different} has other {what} than the chief: data and options must be the "
                "same on all workers"
            )

    @contextlib.contextmanager
    def detect_lost_workers(self) -> Iterator[None]:
        """Turns the errors of a step that another worker does not make into a `RunError`.

        What ends well ends when all of them know that it did.
        """
        try:
            yield
        except _LOST as error:
            if self.number == 1:
                raise
            raise RunError(
                "another worker has gone, or cannot be reached; start all workers again to go on "
                f"from the last checkpoint ({type(error).__name__})"
            ) from error
        self.wait_until_known()
