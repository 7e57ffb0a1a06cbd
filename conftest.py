"""Names that examples use without an import, clean-up after tests, and which tests run."""

import collections
import gc
import importlib.util
import os
import re
import time
import zlib

import numpy as np
import pytest

# Keras is imported where it is used: pytest-xdist's main process needs none.

# TFX has an environment of its own, that of `make test-tfx`.
if importlib.util.find_spec("tfx") is None:
    collect_ignore = ["pipelines/tfx", "tests/pipelines/tfx"]

# Examples that take seconds; `tests/` holds what they show.
SLOW_EXAMPLES = (
    "keras_drill.export.export_onnx.export_onnx",
    "keras_drill.export.export_saved_model.export_saved_model",
    "keras_drill.export.translator.Translator",
    "keras_drill.models.distiller.Distiller",
    "keras_drill.models.sequence_to_sequence.SequenceToSequence",
)

# Libraries that not all supported versions of Python have.
LIBRARIES_OF_EXAMPLES = {"keras_drill.export.export_onnx.export_onnx": "tf2onnx"}

gc.set_threshold(50_000, 20, 20)  # a graph that is traced is many objects, none of them garbage


def pytest_collection_finish():
    # Imported modules stay: later garbage collections need not look at them again.
    gc.collect()
    gc.freeze()


def pytest_addoption(parser):
    parser.addoption(
        "--cases",
        type=int,
        help="run at most so many cases of each parametrized test: from the first to the last, or "
        "one that the test's name chooses",
    )
    parser.addoption(
        "--other-cases",
        type=int,
        help="run only the cases that --cases with the same number does not run",
    )
    parser.addoption(
        "--shard",
        help="I/N: run the test files of the I-th of N parts, in which files are spread by their "
        "names",
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


def pytest_itemcollected(item):
    if item.name in SLOW_EXAMPLES:
        item.add_marker("slow")
    library = LIBRARIES_OF_EXAMPLES.get(item.name)
    if library is not None and importlib.util.find_spec(library) is None:
        item.add_marker(pytest.mark.skip(reason=f"needs {library}"))


@pytest.hookimpl(trylast=True)  # after `-m` has left out its own
def pytest_collection_modifyitems(config, items):
    most, other = config.getoption("cases"), config.getoption("other_cases")
    shard = config.getoption("shard")
    if shard is not None:
        match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", shard)
        if match is None or int(match[1]) > int(match[2]):
            raise pytest.UsageError(f"--shard must be I/N with I from 1 to N. Received: {shard}")
        part, parts = map(int, match.groups())
        select(config, items, lambda item: file_number(item.nodeid) % parts == part - 1)
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
        places = np.linspace(0, len(some) - 1, count).astype(int)
        if count == 1:  # of other tests another place, so that all kinds of cases run
            places = [zlib.crc32(name.encode()) % len(some)]
        kept.update(some[place] for place in places)
    select(config, items, lambda item: (item in kept) == (other is None))


def file_number(nodeid):
    """A number of a test's file, the same on every machine."""
    return zlib.crc32(nodeid.partition("::")[0].encode())


def select(config, items, is_selected):
    """Deselects all other items."""
    config.hook.pytest_deselected(items=[item for item in items if not is_selected(item)])
    items[:] = [item for item in items if is_selected(item)]


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
    from keras_drill.ops.device_kind import assume_device

    with assume_device("cpu"):
        yield


@pytest.fixture(autouse=True)
def names_in_examples(doctest_namespace):
    import keras

    import keras_drill

    doctest_namespace.update(keras=keras, keras_drill=keras_drill, np=np)


@pytest.fixture(autouse=True, scope="module")
def cleared_session():
    """Lets go of a module's models and traced graphs, which hold each other in circles."""
    import keras

    yield
    keras.backend.clear_session()  # collects garbage
    gc.freeze()  # what is still held: to look at it again after each module took minutes
    if keras.backend.backend() == "jax":
        import jax

        jax.clear_caches()  # what it compiled grows to gigabytes, and no other module has use of it
    elif keras.backend.backend() == "tensorflow":
        from tensorflow.python.framework import config

        config.disable_op_determinism()  # trainings enable it; no public function undoes that
