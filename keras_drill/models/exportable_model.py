"""Input signatures of exported models."""

from typing import Any

import keras

from keras_drill.layers.cudnn import portable_kernels
from keras_drill.models.backbone_inputs import dtype_of, symbolic_ends
from keras_drill.ops.private_interfaces import SaveSignature


class ExportableModel(SaveSignature, keras.Model):
    """Base class for models that are exported with the input signature of their `backbone`.

    By default, Keras would export undeclared inputs as floats, with the length of the first batch.
    This class also exports recurrent layers with kernels that run on every device.
    """

    def export(self, filepath: Any, *args: Any, input_signature: Any = None, **kwargs: Any) -> None:
        """Exports the model for inference; see `keras.Model.export`.

        The exported model maps tokens to log-probabilities of all words.

        Args:
            filepath: Folder to write to.
            *args: Other arguments of `keras.Model.export`.
            input_signature: Signature of the exported model. `None` is the backbone's signature
                with any batch size, and with any length if the backbone does not declare one.
            **kwargs: Other arguments of `keras.Model.export`.
        """
        if input_signature is None and self.built:
            input_signature = [input_signature_of(self)]
        with portable_kernels(self):
            super().export(filepath, *args, input_signature=input_signature, **kwargs)

    def save_signature(self) -> Any:
        """Returns the function that `tf.saved_model.save` exports as `serving_default`."""
        if not self.built:
            return super().save_signature()
        import tensorflow as tf

        inputs = keras.tree.map_structure(
            lambda spec: tf.TensorSpec(spec.shape, spec.dtype), input_signature_of(self)
        )

        @tf.function(input_signature=[inputs], autograph=False)
        def serving_default(inputs):
            with portable_kernels(self):
                return self(inputs)

        return serving_default


def input_signature_of(model: keras.Model) -> Any:
    """Returns the `keras.InputSpec`s of the inputs, in the structure of the inputs."""
    ends = symbolic_ends(model.backbone)
    if ends is not None and not isinstance(model.backbone, keras.Sequential):
        return keras.tree.map_structure(
            lambda x: keras.InputSpec(shape=(None, *x.shape[1:]), dtype=x.dtype, name=x.name),
            ends[0],
        )
    return keras.tree.map_shape_structure(
        lambda shape: keras.InputSpec(
            shape=(None, None, *shape[2:])[: len(shape)], dtype=dtype_of(shape)
        ),
        model.get_build_config()["input_shape"],
    )
