import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_drill.distribute import strategy
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.training.snapshot import restore_snapshot, stable_names, take_snapshot
from keras_drill.workbench.training.workers import Workers

ALONE = Workers(strategy("none"))


def make_model(names=("first", "second"), optimizer="adam"):
    layers = [keras.layers.Dense(3, name=name) for name in names]
    model = keras.Sequential([keras.Input((3,)), *layers, keras.layers.Dropout(0.5)])
    model.compile(optimizer, "mse", metrics=["mae"])
    model.train_on_batch(np.ones((2, 3)), np.zeros((2, 3)))
    return model


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "adagrad"])
def test_there_and_back_in_a_process_that_made_other_models(optimizer):
    model, other = make_model(optimizer=optimizer), make_model(optimizer=optimizer)
    arrays = take_snapshot(model, ALONE)
    restore_snapshot(other, arrays, ALONE)
    again = take_snapshot(other, ALONE)
    assert arrays.keys() == again.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, again[name], err_msg=name)


@pytest.mark.slow
def test_layers_of_the_same_shape_do_not_change_places():
    arrays = take_snapshot(make_model(), ALONE)
    with pytest.raises(RunError, match="the checkpoint is of another model"):
        restore_snapshot(make_model(("first", "third")), arrays, ALONE)
    model = make_model(("second", "first"))  # the other way round
    restore_snapshot(model, arrays, ALONE)
    for name, array in take_snapshot(model, ALONE).items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)


def test_names_that_last():
    paths = ["m_3/dense_7/kernel", "m_3/dense/kernel", "seed_generator_9/state", "m_3/cell_10/b"]
    names = ["m/dense.1/kernel", "m/dense/kernel", "seed_generator/state", "m/cell/b"]
    assert stable_names(paths) == names
    assert stable_names(["a_9", "a_10"]) == ["a", "a.1"]  # by number, not by spelling


REPLICAS = """
import keras, numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from keras_drill.workbench.training.snapshot import restore_snapshot, take_snapshot
from keras_drill.workbench.training.workers import Workers
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

class Counting(keras.layers.Dense):
    def build(self, shape):
        self.count = keras.Variable(
            0.0, trainable=False, aggregation="sum", synchronization="on_read", name="count"
        )
        super().build(shape)

def make(strategy=strategy):
    with strategy.scope():
        model = keras.Sequential([keras.Input((3,)), Counting(5)])
        model.compile("adam", "mse")
        model.fit(np.ones((4, 3)), np.zeros((4, 5)), batch_size=2, verbose=0)
    return model

def count(model):
    def step():
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        model.layers[0].count.assign_add(tf.cast(replica + 1, "float32"))
    strategy.run(step)

model, other = make(), make()
count(model)
both, one = Workers(strategy), Workers(tf.distribute.get_strategy())
arrays = take_snapshot(model, both)
(key,) = [name for name in arrays if name.startswith("model/") and name.endswith("count")]
assert [float(arrays[name]) for name in (key, key + "@0", key + "@1")] == [3.0, 1.0, 2.0]
restore_snapshot(other, arrays, both)
again = take_snapshot(other, both)
assert arrays.keys() == again.keys()
for name in arrays:
    np.testing.assert_array_equal(arrays[name], again[name], err_msg=name)

single = make(tf.distribute.get_strategy())
restore_snapshot(single, arrays, one)
assert float(single.layers[0].count) == 3.0
restore_snapshot(other, take_snapshot(single, one), both)
locals_ = strategy.experimental_local_results(other.layers[0].count.value)
assert [float(x) for x in locals_] == [3.0, 0.0], locals_
restore_snapshot(other, arrays, both)
for each in (model, other):
    locals_ = strategy.experimental_local_results(each.layers[0].count.value)
    assert [float(x) for x in locals_] == [1.0, 2.0], locals_
    kernels = strategy.experimental_local_results(each.layers[0].kernel.value)
    np.testing.assert_array_equal(*kernels)
print("same")
"""


@pytest.mark.slow
def test_replicas_keep_what_is_their_own_and_one_has_their_sum():
    done = subprocess.run([sys.executable, "-c", REPLICAS], capture_output=True, text=True)
    assert done.stdout.strip().endswith("same"), done.stderr
