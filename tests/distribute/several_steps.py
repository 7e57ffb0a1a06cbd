"""Prints the error of a worker that is asked for several steps at a time."""

import keras

import keras_drill
from keras_drill.distribute import strategy

if __name__ == "__main__":
    with strategy("multi-worker").scope():
        embedding = keras.layers.Embedding(5, 3)
        model = keras_drill.LanguageModel(embedding, keras_drill.TiedOutput(5, embedding))
        model.compile("sgd", steps_per_execution=2)
    try:
        model.make_train_function()
    except ValueError as error:
        print(error)
