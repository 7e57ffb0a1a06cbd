"""`keras-drill` in a process of its own, with two logical CPUs where the first word is `two`."""

import sys

import tensorflow as tf

from keras_drill.workbench.cli.main import main

if __name__ == "__main__":
    if sys.argv[1] == "two":
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
        )
        del sys.argv[1]
    sys.exit(main())
