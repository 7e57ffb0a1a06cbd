"""Trainings by the command line on one device, two replicas of a process, or two workers."""

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from keras_drill.workbench.training.checkpoints import CheckpointStore
from tests.distribute.workers import ended, started

COMMAND = "tests.distribute.command"
WAYS = {"none": 1, "mirrored": 1, "multi-worker": 2}  # and the processes of each


@contextlib.contextmanager
def training(way: str, options: Path, folder: Path) -> Iterator[list]:
    """The processes of a training."""
    words = ["train", options, "--run", folder, "--strategy", way]
    words = ["two", *words] if way == "mirrored" else words
    with started(COMMAND, [words] * WAYS[way]) as processes:
        yield processes


def train(way: str, options: Path, folder: Path) -> list[str]:
    """Trains to the end; what each process said."""
    with training(way, options, folder) as processes:
        found = ended(processes)
    assert [status for status, _ in found] == [0] * WAYS[way], found
    return [said for _, said in found]


def train_each_way(options: Path, folder: Path) -> dict[str, list[str]]:
    """Trains in all ways, two at a time; what the processes of each way said."""
    with ThreadPoolExecutor(2) as pool:
        said = pool.map(lambda way: train(way, options, folder / way), WAYS)
        return dict(zip(WAYS, said, strict=True))


def wait_for_step(folder: Path, step: int, processes: list) -> None:
    """Until there is a checkpoint of a step or one after it, or a process has ended."""
    deadline = time.monotonic() + 900
    while last_step(folder) < step and all(p.poll() is None for p in processes):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def last_step(folder: Path) -> int:
    """The step of the last checkpoint; 0 where there is none."""
    return max(CheckpointStore(folder / "checkpoints").steps(), default=0)


def checkpoint(folder: Path) -> tuple[dict, dict]:
    """Arrays and state of the last one."""
    loaded = CheckpointStore(folder / "checkpoints").load_latest()
    assert loaded is not None
    return loaded


def assert_alike(one: Path, other: Path) -> None:
    """Two runs ended with the same variables, slots, statistics, moves, means and losses."""
    (arrays, state), (others, other_state) = checkpoint(one), checkpoint(other)
    arrays, others = (
        {key: value for key, value in each.items() if "@" not in key} for each in (arrays, others)
    )
    assert arrays.keys() == others.keys()
    for key, value in arrays.items():
        np.testing.assert_allclose(others[key], value, rtol=1e-5, atol=1e-5, err_msg=key)
    for epoch, other_epoch in zip(
        state["training"]["history"], other_state["training"]["history"], strict=True
    ):
        assert epoch.keys() == other_epoch.keys()
        for name in epoch.keys() - {"seconds"}:
            np.testing.assert_allclose(other_epoch[name], epoch[name], rtol=2e-5, err_msg=name)


def assert_same_bits(one: Path, other: Path) -> None:
    """The same, to the last bit."""
    (arrays, state), (others, other_state) = checkpoint(one), checkpoint(other)
    assert arrays.keys() == others.keys()
    for key, value in arrays.items():
        np.testing.assert_array_equal(others[key], value, err_msg=key)
    for each in (state, other_state):
        for epoch in each["training"]["history"]:
            del epoch["seconds"]
        del each["training"]["epoch_seconds"]
    assert state == other_state
