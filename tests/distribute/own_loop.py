"""Runs the loop of the documentation and prints its losses and weights, as JSON: `python -m ...
DEVICES`."""

import json
import sys

import keras
import numpy as np
import tensorflow as tf

from tests.docs.pages import run_code

PAGE = "docs/how-to/own-training-loop.md"


def main(devices: str) -> None:
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * int(devices),
    )
    keras.utils.set_random_seed(1)
    names: dict = {}
    run_code(PAGE, names)
    assert names["scheme"].num_replicas_in_sync == int(devices)
    weights = [np.ravel(v.numpy()) for v in names["model"].trainable_variables]
    print(json.dumps([float(names["loss"]), *np.concatenate(weights).tolist()]))


if __name__ == "__main__":
    main(*sys.argv[1:])
