"""The output layers of the literature as subclasses of `OutputLayer`, under the papers' names."""

from keras_drill.ready_made.bilinear_output import BilinearOutput
from keras_drill.ready_made.drill_output import DrillOutput
from keras_drill.ready_made.dual_nonlinear_output import DualNonlinearOutput
from keras_drill.ready_made.kernelized_bayesian_softmax import KernelizedBayesianSoftmax
from keras_drill.ready_made.mixture_of_softmaxes import MixtureOfSoftmaxes
from keras_drill.ready_made.softmax_output import SoftmaxOutput
from keras_drill.ready_made.tied_output import TiedOutput

__all__ = [
    "BilinearOutput",
    "DrillOutput",
    "DualNonlinearOutput",
    "KernelizedBayesianSoftmax",
    "MixtureOfSoftmaxes",
    "SoftmaxOutput",
    "TiedOutput",
]
