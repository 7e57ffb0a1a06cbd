"""Prints whether `fit` on workers needs what overrides Keras."""

from keras_drill.distribute import strategy
from keras_drill.ops.private_interfaces import means_over_rows

if __name__ == "__main__":
    print(means_over_rows(strategy("multi-worker")))
