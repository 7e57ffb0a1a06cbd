from abc import abstractmethod
from typing import Any

import keras

from keras_drill.ops.private_interfaces import replace_sublayer
from keras_drill.output_layer.embedding_table import embedding_table
from keras_drill.output_layer.tying import embeddings_upstream, find_original, path_of
from keras_drill.types import Tensor


class TiedLayer(keras.layers.Layer):
    """Base class for layers that can share an embedding with the surrounding model.

    Saving, cloning and `from_config` keep the embedding shared; `tie_to` lists the conditions. The
    embedding belongs to the model: setting `trainable` of this layer does not change the embedding.

    Args:
        embedding: The `keras.layers.Embedding` to share, or `None`.
        **kwargs: Keyword arguments of `keras.layers.Layer`.
    """

    def __init__(self, embedding: keras.layers.Embedding | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.embedding = embedding
        self._embedding_is_copy = False
        # Path of the embedding in the functional model, or None if the model does not contain it.
        self._embedding_path: str | None = None

    @abstractmethod
    def check_embedding(self, embedding: keras.layers.Embedding) -> None:
        """Raises `ValueError` for an embedding that this layer cannot share."""

    @property
    def embeddings(self) -> Tensor:
        """The table `[M, d]` of the shared embedding.

        The table is a variable, or a tensor if the embedding has LoRA, is quantised, or is untied.
        """
        return embedding_table(self.embedding)

    def tie_to(self, embedding: keras.layers.Embedding | None) -> None:
        """Shares the model's embedding, instead of the copy that `from_config` created.

        Call this method in your own model class, if the class creates embedding and layer from
        their configs. In other cases the package calls this method: in `keras_drill.LanguageModel`,
        and in functional models in which the layer's inputs are computed from the embedding.

        Args:
            embedding: The embedding to share. `None` keeps the layer's present embedding.

        Raises:
            ValueError: The layer cannot share this embedding.
        """
        if embedding is not None and embedding is not self.embedding:
            self.check_embedding(embedding)
            replace_sublayer(self, "embedding", embedding)  # may already be built with its copy
        self._embedding_is_copy = False

    def __call__(self, inputs: Tensor, *args: Any, **kwargs: Any) -> Any:
        if self.embedding is not None and isinstance(inputs, keras.KerasTensor):
            found = embeddings_upstream(inputs)
            if self._embedding_is_copy:
                self.tie_to(find_original(self.embedding, self._embedding_path, found))
            self._embedding_path = path_of(self.embedding, found)
        return super().__call__(inputs, *args, **kwargs)

    @property
    def trainable(self) -> bool:
        return super().trainable

    @trainable.setter
    def trainable(self, value):
        embedding = getattr(self, "embedding", None)
        if embedding is None:
            keras.layers.Layer.trainable.fset(self, value)
            return
        # Keras sets `trainable` of all inner layers, so restore that of the embedding and its LoRA
        # table.
        was_trainable = embedding.trainable
        kept = [(variable, variable.trainable) for variable in embedding.variables]
        keras.layers.Layer.trainable.fset(self, value)
        embedding.trainable = was_trainable
        for variable, was_trainable in kept:
            variable.trainable = was_trainable

    def get_config(self) -> dict:
        config = super().get_config()
        config["embedding"] = self.embedding and keras.saving.serialize_keras_object(self.embedding)
        if self._embedding_path is not None:
            config["embedding_path"] = self._embedding_path
        return config

    @classmethod
    def from_config(cls, config: dict) -> "TiedLayer":
        config = dict(config)
        path = config.pop("embedding_path", None)
        if isinstance(config.get("embedding"), dict):
            config["embedding"] = keras.saving.deserialize_keras_object(config["embedding"])
        layer = cls(**config)
        layer._embedding_is_copy = layer.embedding is not None
        layer._embedding_path = path
        return layer
