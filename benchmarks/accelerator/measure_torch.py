"""Common functions of the parts that run on PyTorch. Without a GPU they use the CPU, for tests."""

import statistics
import time


def device() -> str:
    """The device that PyTorch computes on, which becomes its default."""
    import torch

    torch.set_float32_matmul_precision("high")
    torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def measure(step, rounds: int, num_steps: int = 1, kept: int = 0) -> dict:
    """Milliseconds (the median) of `step()`, and MiB that it takes beyond `kept` bytes.

    Args:
        step: Called twice before it is timed.
        rounds: How often it is timed.
        num_steps: Steps that are timed together.
        kept: Bytes of its results.
    """
    import torch

    has_gpu = torch.cuda.is_available()
    step()
    if has_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    step()
    times = []
    for _ in range(rounds):
        if has_gpu:
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(num_steps):
            step()
        if has_gpu:
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start) / num_steps)
    found = {"ms": statistics.median(times)}
    if has_gpu:
        found["mib"] = (torch.cuda.max_memory_allocated() - before - kept) / 2**20
    return found
