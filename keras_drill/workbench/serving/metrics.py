"""Metrics of the server in the text format of Prometheus, with TensorFlow Serving's names."""

import bisect
import collections

_LATENCY_BOUNDS = [10.0 * 1.8**power for power in range(33)]  # microseconds
_BATCH_BOUNDS = [float(2**power) for power in range(11)]


class _Histogram:
    def __init__(self, bounds: list[float]):
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str, labels: str):
        total = 0
        for bound, count in zip([*self.bounds, float("inf")], self.counts, strict=True):
            total += count
            shown = "+Inf" if bound == float("inf") else f"{bound:g}"
            yield f'{name}_bucket{{{labels},le="{shown}"}} {total}'
        yield f"{name}_sum{{{labels}}} {self.sum:g}"
        yield f"{name}_count{{{labels}}} {total}"


class Metrics:
    """Counts requests, and records their durations and the sizes of batches.

    Example:

    >>> metrics = Metrics()
    >>> metrics.count_request("cats", "REST", "Predict", "OK", seconds=0.002)
    >>> metrics.text().splitlines()[:2]
    ['# TYPE :tensorflow:serving:request_count counter',
     ':tensorflow:serving:request_count{model_name="cats",status="OK"} 1']
    """

    def __init__(self) -> None:
        self._requests: collections.Counter[tuple[str, str]] = collections.Counter()
        self._latencies: dict[tuple[str, str, str], _Histogram] = {}
        self._batches: dict[str, _Histogram] = {}

    def count_request(
        self, model: str, entrypoint: str, api: str, status: str, seconds: float
    ) -> None:
        """Counts a finished request by its status; `model` is "" for unknown models."""
        self._requests[model, status] += 1
        key = model, entrypoint, api
        if key not in self._latencies:
            self._latencies[key] = _Histogram(_LATENCY_BOUNDS)
        self._latencies[key].add(seconds * 1e6)

    def count_batch(self, model: str, rows: int) -> None:
        """Counts a batch and its number of rows."""
        if model not in self._batches:
            self._batches[model] = _Histogram(_BATCH_BOUNDS)
        self._batches[model].add(rows)

    def text(self) -> str:
        """Returns all metrics as text, for `/monitoring/prometheus/metrics`."""
        name = ":tensorflow:serving:request_count"
        lines = [f"# TYPE {name} counter"]
        for (model, status), count in sorted(self._requests.items()):
            lines.append(f'{name}{{model_name="{_label(model)}",status="{status}"}} {count}')
        name = ":tensorflow:serving:request_latency"
        lines.append(f"# TYPE {name} histogram")
        for (model, entrypoint, api), histogram in sorted(self._latencies.items()):
            labels = f'model_name="{_label(model)}",API="{api}",entrypoint="{entrypoint}"'
            lines.extend(histogram.lines(name, labels))
        name = ":tensorflow:serving:batching_session:processed_batch_size"
        lines.append(f"# TYPE {name} histogram")
        for model, histogram in sorted(self._batches.items()):
            lines.extend(histogram.lines(name, f'model_name="{_label(model)}"'))
        return "\n".join(lines) + "\n"


def _label(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
