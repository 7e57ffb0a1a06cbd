"""Language models as SavedModels that take and give text (TensorFlow only)."""

from keras_drill.export.asset_vocabulary import AssetVocabulary
from keras_drill.export.export_saved_model import export_saved_model
from keras_drill.export.text_codec import TextCodec
from keras_drill.export.text_model import TextModel

__all__ = ["AssetVocabulary", "TextCodec", "TextModel", "export_saved_model"]
