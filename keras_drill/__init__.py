"""Output layers for neural language generation, on Keras 3.

Begin with these names:

    LanguageModel                a backbone and an output layer, trained with the fused loss
    SequenceToSequence           the same for models with a source and a target
    TiedOutput, SoftmaxOutput    the baselines: weight tying, and a separate table of labels
    DrillOutput                  labels from a deep residual network (DRILL)
    BilinearOutput               labels from a bilinear map
    KernelizedBayesianSoftmax    several senses (embeddings) per word (KerBS)
    MixtureOfSoftmaxes           several softmaxes per token (MoS)
    OutputLayer                  the class of all of these: label encoder, score, composition
    models                       backbones: AWDLSTM, GRULanguageBackbone, Transformer ...
    data                         text files, tokenizers, vocabularies, batches (TensorFlow)
    decoding                     generate, samplers, beam search, constraints
    metrics                      Perplexity, TokenAccuracy, scores of texts
    export                       SavedModels with text in and text out (TensorFlow)
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Keras can load a saved layer only after the layer's module was imported, so the library imports
# all layers. The command imports modules on demand, so that `--help` and errors appear at once.
_IS_COMMAND = not TYPE_CHECKING and "keras_drill_command" in sys.modules
# These modules import TensorFlow, which users of JAX may not have: import them on demand.
_ON_DEMAND = ("data", "distribute", "export")

if not _IS_COMMAND:
    from keras_drill.api import *  # noqa: F403
    from keras_drill.api import __all__ as __all__

if TYPE_CHECKING:
    from keras_drill import data as data
    from keras_drill import distribute as distribute
    from keras_drill import export as export
else:

    def __getattr__(name: str) -> Any:
        if name in _ON_DEMAND:
            return importlib.import_module(f"keras_drill.{name}")
        if _IS_COMMAND:
            return getattr(importlib.import_module("keras_drill.api"), name)
        raise AttributeError(f"module 'keras_drill' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *_ON_DEMAND})
