"""Exports models: as SavedModels, for CTranslate2, and to ONNX (TensorFlow only)."""

from keras_drill.export.asset_vocabulary import AssetVocabulary
from keras_drill.export.export_ctranslate2 import export_ctranslate2
from keras_drill.export.export_onnx import export_onnx
from keras_drill.export.export_saved_model import export_saved_model
from keras_drill.export.export_translator import export_translator
from keras_drill.export.model_card import ModelCard
from keras_drill.export.narrow_weights import NarrowWeights
from keras_drill.export.sense_contexts import SenseContexts
from keras_drill.export.serving_operations import unserved_operations
from keras_drill.export.side import Side
from keras_drill.export.text_codec import TextCodec
from keras_drill.export.text_model import TextModel
from keras_drill.export.translator import Translator

__all__ = [
    "AssetVocabulary",
    "ModelCard",
    "NarrowWeights",
    "SenseContexts",
    "Side",
    "TextCodec",
    "TextModel",
    "Translator",
    "export_ctranslate2",
    "export_onnx",
    "export_saved_model",
    "export_translator",
    "unserved_operations",
]
