"""Output layers for neural language generation, on Keras 3."""

import importlib
import sys

__version__ = "0.1.0"

_MODULES = {
    "BilinearLabelEncoder": "label_encoders",
    "BilinearOutput": "ready_made",
    "DescriptionLabelEncoder": "label_encoders",
    "DrillOutput": "ready_made",
    "DualNonlinearLabelEncoder": "label_encoders",
    "DualNonlinearOutput": "ready_made",
    "IdentityLabelEncoder": "label_encoders",
    "KernelizedBayesianSoftmax": "ready_made",
    "LabelEncoder": "label_encoders",
    "LanguageModel": "models.language_model",
    "MixtureOfSoftmaxes": "ready_made",
    "OutputLayer": "output_layer",
    "ResidualLabelEncoder": "label_encoders",
    "ScheduledSampling": "models.scheduled_sampling",
    "SenseEmbedding": "senses",
    "SenseReallocation": "callbacks",
    "SenseReallocator": "senses",
    "SequenceToSequence": "models.sequence_to_sequence",
    "SoftmaxOutput": "ready_made",
    "TiedOutput": "ready_made",
}
_PACKAGES = (
    "callbacks",
    "compositions",
    "decoding",
    "label_encoders",
    "layers",
    "metrics",
    "models",
    "ops",
    "optimizers",
    "scores",
    "senses",
)

__all__ = sorted([*_MODULES, *_PACKAGES])


def __getattr__(name: str):
    if name in _MODULES:
        return getattr(importlib.import_module(f"keras_drill.{_MODULES[name]}"), name)
    if name in _PACKAGES:
        return importlib.import_module(f"keras_drill.{name}")
    raise AttributeError(f"module 'keras_drill' has no attribute {name!r}")


# Keras finds a saved layer's class only once its module is imported. Only the command imports what
# it needs when it needs it, and so answers `--help` and mistakes at once.
if "keras_drill_command" not in sys.modules:
    for _name in __all__:
        __getattr__(_name)
