"""The public names of `import keras_drill`."""

from keras_drill import (
    callbacks,
    compositions,
    decoding,
    label_encoders,
    layers,
    metrics,
    models,
    ops,
    optimizers,
    scores,
    senses,
)
from keras_drill.callbacks import SenseReallocation
from keras_drill.label_encoders import (
    BilinearLabelEncoder,
    DescriptionLabelEncoder,
    DualNonlinearLabelEncoder,
    IdentityLabelEncoder,
    LabelEncoder,
    ResidualLabelEncoder,
)
from keras_drill.models.distiller import Distiller
from keras_drill.models.language_model import LanguageModel
from keras_drill.models.scheduled_sampling import ScheduledSampling
from keras_drill.models.sequence_to_sequence import SequenceToSequence
from keras_drill.output_layer import OutputLayer
from keras_drill.ready_made import (
    BilinearOutput,
    DrillOutput,
    DualNonlinearOutput,
    KernelizedBayesianSoftmax,
    MixtureOfSoftmaxes,
    SoftmaxOutput,
    TiedOutput,
)
from keras_drill.senses import SenseEmbedding, SenseReallocator

__all__ = [
    "BilinearLabelEncoder",
    "BilinearOutput",
    "DescriptionLabelEncoder",
    "Distiller",
    "DrillOutput",
    "DualNonlinearLabelEncoder",
    "DualNonlinearOutput",
    "IdentityLabelEncoder",
    "KernelizedBayesianSoftmax",
    "LabelEncoder",
    "LanguageModel",
    "MixtureOfSoftmaxes",
    "OutputLayer",
    "ResidualLabelEncoder",
    "ScheduledSampling",
    "SenseEmbedding",
    "SenseReallocation",
    "SenseReallocator",
    "SequenceToSequence",
    "SoftmaxOutput",
    "TiedOutput",
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
]
