"""What examples may use without importing it, what tests leave behind, and how many cases run."""

import collections
import gc
import importlib.util
import os
import time

import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.ops.device_kind import assume_device

# TFX has an environment of its own, that of `make test-tfx`.
if importlib.util.find_spec("tfx") is None:
    collect_ignore = ["pipelines/tfx", "tests/pipelines/tfx"]

# What imports made stays: the collections below need not look at it again.
gc.collect()
gc.freeze()
gc.set_threshold(50_000, 20, 20)  # a graph that is traced is many objects, none of them garbage


def pytest_addoption(parser):
    parser.addoption(
        "--cases",
        type=int,
        help="run at most so many cases of each parametrized test, from the first to the last: for "
        "environments whose own part is small beside the code that all of them run",
    )
    parser.addoption(
        "--other-cases",
        type=int,
        help="run only the cases that --cases with the same number does not run",
    )
    parser.addoption(
        "--fuzz-inputs",
        type=int,
        default=10_000,
        help="how many inputs the slow tests in tests/fuzz try, all together",
    )
    parser.addoption(
        "--kills",
        type=int,
        default=20,
        help="how often slow tests kill a program at a random moment, one after another",
    )


@pytest.hookimpl(trylast=True)  # after `-m` has left out its own
def pytest_collection_modifyitems(config, items):
    most, other = config.getoption("cases"), config.getoption("other_cases")
    if most is None and other is None:
        return
    cases = collections.defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    kept = set()
    for name, some in cases.items():
        # The cases of these are the public layers, and files.
        is_whole = "conformance/" in name or "original_implementations" in name
        count = len(some) if is_whole else min(most or other, len(some))
        kept.update(some[int(place)] for place in np.linspace(0, len(some) - 1, count))
    selected = kept if other is None else set(items) - kept
    config.hook.pytest_deselected(items=[item for item in items if item not in selected])
    items[:] = [item for item in items if item in selected]


def pytest_runtest_setup():
    end = os.environ.get("TESTS_END")  # seconds since the epoch
    if end is not None and time.time() > float(end):
        pytest.skip("out of time; `make test-all` takes what it needs")


@pytest.fixture
def kills(request):
    """For how many kills, one after another, to go."""
    return range(request.config.getoption("kills"))


@pytest.fixture
def tiles_of_a_cpu():
    """The fused loss cuts its work as on a CPU, whatever the device."""
    with assume_device("cpu"):
        yield


@pytest.fixture(autouse=True)
def names_in_examples(doctest_namespace):
    doctest_namespace.update(keras=keras, keras_drill=keras_drill, np=np)


@pytest.fixture(autouse=True, scope="module")
def cleared_session():
    """Lets go of a module's models and traced graphs, which hold each other in circles."""
    yield
    keras.backend.clear_session()  # collects garbage
    gc.freeze()  # what is still held: to look at it again after each module took minutes
    if keras.backend.backend() == "jax":
        import jax

        jax.clear_caches()  # what it compiled grows to gigabytes, and no other module has use of it
    elif keras.backend.backend() == "tensorflow":
        from tensorflow.python.framework import config

        config.disable_op_determinism()  # trainings enable it; no public function undoes that
