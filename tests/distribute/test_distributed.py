"""One device, two replicas of one process and two workers: the same training."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.distribute.workers import ended, run_workers, started

pytestmark = pytest.mark.slow

TRAIN = "tests.distribute.train"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What came of each way to train, by its name, and of workers what each of them has."""
    folder = tmp_path_factory.mktemp("distributed")
    with ThreadPoolExecutor() as pool:
        alone = [[[name, folder / f"{name}.npz"]] for name in ("none", "mirrored")]
        list(pool.map(run_workers, [TRAIN] * len(alone), alone))
    workers = [["multi-worker", str(folder / f"worker-{i}.npz")] for i in range(2)]
    assert run_workers(TRAIN, workers) == ["chief", "worker"]
    names = ("none", "mirrored", "worker-0", "worker-1")
    return {name: dict(np.load(folder / f"{name}.npz")) for name in names}


@pytest.mark.parametrize("name", ["mirrored", "worker-0", "worker-1"])
def test_two_train_like_one(runs, name):
    """Loss after every batch, weights, slots, statistics of senses and the mean of NT-ASGD; with
    carried state, AR and TAR, unequal padding, and a replica without rows."""
    one, two = runs["none"], runs[name]
    assert one.keys() == two.keys()
    for key, value in one.items():
        np.testing.assert_allclose(two[key], value, rtol=1e-5, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("name", ["mirrored", "worker-0", "worker-1"])
def test_senses_move_and_averaging_begins_alike(runs, name):
    one, two = runs["none"], runs[name]
    assert one["stateful/moves"].sum() > 0 and one["stateful/averaging_num_averaged"] > 0
    for key in ("iteration", "moves", "senses", "from_words", "to_words", "averaging_num_averaged"):
        np.testing.assert_array_equal(two[f"stateful/{key}"], one[f"stateful/{key}"], err_msg=key)


def test_workers_have_the_same_bits(runs):
    for key, value in runs["worker-0"].items():
        np.testing.assert_array_equal(runs["worker-1"][key], value, err_msg=key)


@pytest.mark.parametrize(("name", "number"), [("mirrored", 1), ("multi-worker", 2)])
def test_several_steps_at_a_time_and_accumulated_gradients_are_refused(name, number):
    with started("tests.distribute.several_steps", [[name]] * number) as processes:
        found = ended(processes)
    for status, said in found:
        assert status == 0, said
        assert "Received: gradient_accumulation_steps=2" in said and "not refused" not in said
        assert "Received: steps_per_execution=2" in said
        assert "Received: use_ema=True" in said
        assert "Call `optimizer.build(model.trainable_variables)`" in said
        assert ("Received: jit_compile=True" in said) == (name == "mirrored")


def test_keras_still_means_over_rows():
    """When this fails, Keras is mended, and `FitsOnWorkers._make_function` can go."""
    for output in run_workers("tests.distribute.probe", [[], []]):
        assert output == "True"
