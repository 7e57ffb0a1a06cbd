"""Public functions, and small operations that several parts of the package share."""

from typing import TYPE_CHECKING, Any

import keras

if keras.backend.backend() not in ("tensorflow", "jax"):
    raise ImportError(
        "keras_drill runs on Keras' TensorFlow and JAX backends. Set the environment variable "
        "KERAS_BACKEND to 'tensorflow' or 'jax' before importing Keras. "
        f"Received: backend {keras.backend.backend()!r}"
    )

if TYPE_CHECKING:
    from keras_drill.fused_loss.linear_cross_entropy import linear_cross_entropy
    from keras_drill.fused_loss.linear_kl_divergence import linear_kl_divergence
    from keras_drill.fused_loss.sparse_linear_kl_divergence import sparse_linear_kl_divergence

__all__ = ["linear_cross_entropy", "linear_kl_divergence", "sparse_linear_kl_divergence"]


def __getattr__(name: str) -> Any:
    # Imported on first use: the modules of the fused loss import modules of this package.
    if name == "linear_cross_entropy":
        from keras_drill.fused_loss.linear_cross_entropy import linear_cross_entropy

        return linear_cross_entropy
    if name == "linear_kl_divergence":
        from keras_drill.fused_loss.linear_kl_divergence import linear_kl_divergence

        return linear_kl_divergence
    if name == "sparse_linear_kl_divergence":
        from keras_drill.fused_loss.sparse_linear_kl_divergence import sparse_linear_kl_divergence

        return sparse_linear_kl_divergence
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
