"""Combines requests that arrive at about the same time to batches."""

import asyncio
import collections
import contextlib
import dataclasses
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any

import numpy as np

from keras_drill.workbench.serving.errors import ServingError, invalid
from keras_drill.workbench.serving.limits import Limits
from keras_drill.workbench.serving.metrics import Metrics
from keras_drill.workbench.serving.servable import Servable

Arrays = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class BatchingOptions:
    """Options of batching.

    Args:
        max_batch_size: Maximum number of rows in a batch of several requests; 1 disables batching.
        delay_seconds: Time in seconds that the first request of a batch waits for further requests.
    """

    max_batch_size: int = 32
    delay_seconds: float = 0.005


@dataclasses.dataclass(eq=False)
class _Request:
    inputs: Mapping[str, np.ndarray]
    rows: int
    answer: asyncio.Future


class _Queue:
    """Queue of the waiting requests of one signature."""

    def __init__(self) -> None:
        self.requests: collections.deque[_Request] = collections.deque()
        self.is_full = asyncio.Event()

    def rows(self) -> int:
        return sum(request.rows for request in self.requests)

    def take(self, most: int) -> list[_Request]:
        """Removes and returns the first requests, with at most `most` rows in all.

        A single request may have more rows. Requests that have timed out are dropped.
        """
        taken: list[_Request] = []
        rows = 0
        while self.requests and (not taken or rows + self.requests[0].rows <= most):
            request = self.requests.popleft()
            if not request.answer.done():
                taken.append(request)
                rows += request.rows
        self.is_full.clear()
        return taken


class Batcher:
    """Runs signatures, and combines requests to one call if their results can be separated.

    A request gets the same result as without batching: its own rows, without the padding that
    longer rows of other requests cause. Signatures whose padding cannot be recognized are never
    batched, see `can_share`.

    Args:
        executor: Executor with the threads that run TensorFlow.
        slots: Number of batches that run at the same time.
        options: Options of batching.
        limits: Limits of the requests.
        metrics: Metrics that count the batches.
    """

    def __init__(
        self,
        executor: Executor,
        slots: int,
        options: BatchingOptions,
        limits: Limits,
        metrics: Metrics,
    ):
        self.executor = executor
        self.options = options
        self.limits = limits
        self.metrics = metrics
        self._slots = asyncio.Semaphore(slots)
        self._queues: dict[tuple[Servable, str], _Queue] = {}
        self._tasks: set[asyncio.Task] = set()
        self._waiting = 0

    async def run(
        self, servable: Servable, signature: str, inputs: Arrays, seconds: float
    ) -> Arrays:
        """Runs a signature for a request.

        Args:
            servable: The version to run. The caller must keep the version loaded.
            signature: Name of the signature.
            inputs: Arrays by name, already checked.
            seconds: Maximum duration.

        Raises:
            ServingError: Too many requests are waiting, the request has timed out, or the signature
                failed.
        """
        if self._waiting >= self.limits.waiting:
            raise self.limits.too_many_waiting()
        answer = asyncio.get_running_loop().create_future()
        if not can_share(servable.signature_defs[signature]):
            self._start(self._run_when_free(servable, signature, _Request(inputs, 1, answer)))
        else:
            request = _Request(inputs, _rows(inputs), answer)
            if request.rows < self.options.max_batch_size:
                self._enqueue(servable, signature, request)
            else:
                self._start(self._run_when_free(servable, signature, request))
        self._waiting += 1
        try:
            return await asyncio.wait_for(answer, seconds)
        except (TimeoutError, asyncio.TimeoutError) as error:  # two classes before Python 3.11
            raise ServingError(
                "DEADLINE_EXCEEDED", f"The model did not respond within {seconds:.3g} seconds"
            ) from error
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        """Cancels all remaining batches."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _enqueue(self, servable: Servable, signature: str, request: _Request) -> None:
        key = servable, signature
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue()
            self._start(self._empty(key, queue))
        queue.requests.append(request)
        if queue.rows() >= self.options.max_batch_size:
            queue.is_full.set()

    def _start(self, coroutine) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)  # the event loop holds weak references only
        task.add_done_callback(self._tasks.discard)

    async def _empty(self, key: tuple[Servable, str], queue: _Queue) -> None:
        """Runs the requests of a queue in batches until the queue is empty."""
        while queue.requests:
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(queue.is_full.wait(), self.options.delay_seconds)
            # The batch grows further while all slots are in use.
            await self._slots.acquire()
            self._start(self._run_and_release(*key, queue.take(self.options.max_batch_size)))
        del self._queues[key]

    async def _run_when_free(self, servable: Servable, signature: str, request: _Request) -> None:
        await self._slots.acquire()
        await self._run_and_release(servable, signature, [request])

    async def _run_and_release(
        self, servable: Servable, signature: str, requests: list[_Request]
    ) -> None:
        requests = [request for request in requests if not request.answer.done()]
        try:
            if requests:
                self.metrics.count_batch(servable.name, sum(r.rows for r in requests))
                await self._answer(servable, signature, requests)
        finally:
            self._slots.release()

    async def _answer(self, servable: Servable, signature: str, requests: list[_Request]) -> None:
        loop = asyncio.get_running_loop()
        try:
            answers = await loop.run_in_executor(
                self.executor, _answers, servable, signature, requests
            )
        except Exception as error:
            if len(requests) > 1:  # a faulty request must not make the others fail
                for request in requests:
                    await self._answer(servable, signature, [request])
            elif not requests[0].answer.done():
                requests[0].answer.set_exception(error)
            return
        for request, answer in zip(requests, answers, strict=True):
            if not request.answer.done():
                request.answer.set_result(answer)


def can_share(signature_def: Any) -> bool:
    """Returns whether requests to a signature can be batched and their results separated.

    This has four conditions:

    - The first dimension of all inputs and outputs is the batch.
    - No other dimension of an input has an unknown size.
    - Of the other dimensions of an output, only the second may have an unknown size.
    - If an output has a second dimension of unknown size, an output `lengths` `[B]` contains its
      size without padding.
    """
    inputs = [info.tensor_shape for info in signature_def.inputs.values()]
    outputs = [info.tensor_shape for info in signature_def.outputs.values()]
    for shape in inputs + outputs:
        if shape.unknown_rank or not shape.dim or shape.dim[0].size != -1:
            return False
    if any(dim.size == -1 for shape in inputs for dim in shape.dim[1:]):
        return False
    if any(dim.size == -1 for shape in outputs for dim in shape.dim[2:]):
        return False
    if not any(dim.size == -1 for shape in outputs for dim in shape.dim[1:2]):
        return bool(inputs)
    lengths = signature_def.outputs  # access by key would create missing entries of a map
    return "lengths" in lengths and len(lengths["lengths"].tensor_shape.dim) == 1


def _answers(servable: Servable, signature: str, requests: list[_Request]) -> list[Arrays]:
    """Runs a batch of requests, and returns the outputs of each request."""
    if len(requests) == 1:
        return [servable.run(signature, requests[0].inputs)]
    names = requests[0].inputs
    outputs = servable.run(
        signature,
        {name: np.concatenate([request.inputs[name] for request in requests]) for name in names},
    )
    shapes = {
        name: info.tensor_shape for name, info in servable.signature_defs[signature].outputs.items()
    }
    padded = {
        name for name, shape in shapes.items() if len(shape.dim) > 1 and shape.dim[1].size == -1
    }
    answers, start = [], 0
    for request in requests:
        rows = {name: value[start : start + request.rows] for name, value in outputs.items()}
        longest = int(rows["lengths"].max(initial=0)) if padded else 0
        answers.append(
            {name: row[:, :longest] if name in padded else row for name, row in rows.items()}
        )
        start += request.rows
    return answers


def _rows(inputs: Arrays) -> int:
    sizes = {value.shape[0] for value in inputs.values()}
    if len(sizes) != 1:
        raise invalid("Batching session Run() input tensors must have equal 0th-dimension size")
    return sizes.pop()
