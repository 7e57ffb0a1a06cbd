import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_drill.tasks.errors import RunError
from keras_drill.training.snapshot import restore_snapshot, stable_names, take_snapshot


def make_model(names=("first", "second"), optimizer="adam"):
    layers = [keras.layers.Dense(3, name=name) for name in names]
    model = keras.Sequential([keras.Input((3,)), *layers, keras.layers.Dropout(0.5)])
    model.compile(optimizer, "mse", metrics=["mae"])
    model.train_on_batch(np.ones((2, 3)), np.zeros((2, 3)))
    return model


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "adagrad"])
def test_there_and_back_in_a_process_that_made_other_models(optimizer):
    model, other = make_model(optimizer=optimizer), make_model(optimizer=optimizer)
    arrays = take_snapshot(model)
    restore_snapshot(other, arrays)
    again = take_snapshot(other)
    assert arrays.keys() == again.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, again[name], err_msg=name)


def test_layers_of_the_same_shape_do_not_change_places():
    arrays = take_snapshot(make_model())
    with pytest.raises(RunError, match="the checkpoint is of another model"):
        restore_snapshot(make_model(("first", "third")), arrays)
    model = make_model(("second", "first"))  # the other way round
    restore_snapshot(model, arrays)
    for name, array in take_snapshot(model).items():
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
from keras_drill.training.snapshot import restore_snapshot, take_snapshot
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

class Counting(keras.layers.Dense):
    def build(self, shape):
        self.count = keras.Variable(
            0.0, trainable=False, aggregation="sum", synchronization="on_read", name="count"
        )
        super().build(shape)

def make():
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
arrays = take_snapshot(model)
assert any(name.endswith("@1") for name in arrays), list(arrays)
restore_snapshot(other, arrays)
again = take_snapshot(other)
assert arrays.keys() == again.keys()
for name in arrays:
    np.testing.assert_array_equal(arrays[name], again[name], err_msg=name)
for one in (model, other):
    locals_ = strategy.experimental_local_results(one.layers[0].count.value)
    assert [float(x) for x in locals_] == [1.0, 2.0], locals_
    kernels = strategy.experimental_local_results(one.layers[0].kernel.value)
    np.testing.assert_array_equal(*kernels)
print("same")
"""


def test_replicas_keep_what_is_their_own():
    done = subprocess.run([sys.executable, "-c", REPLICAS], capture_output=True, text=True)
    assert done.stdout.strip().endswith("same"), done.stderr
