"""Script that continues texts with an exported model, with only TensorFlow and tensorflow-text.

    python continue_texts.py MODEL TEXT ...

`keras-drill demo` runs this file in a separate process.
"""

import sys


def main(model: str, *texts: str) -> None:
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  registers the operations of the tokenizer

    continue_text = tf.saved_model.load(model).signatures["continue"]
    for text in continue_text(tf.constant(texts))["texts"].numpy():
        print(f"  {text.decode()}", flush=True)
    if "keras_drill" in sys.modules:
        raise RuntimeError("the exported model must not import keras_drill, but imported it")


if __name__ == "__main__":
    main(*sys.argv[1:])
