"""The kind of device (CPU, GPU or TPU), on which tile sizes and workarounds for XLA depend."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import keras

KINDS = ("cpu", "gpu", "tpu")

_assumed: ContextVar[str | None] = ContextVar("assumed_device", default=None)


def device_kind() -> str:
    """Returns the kind of device on which Keras computes: "cpu", "gpu" or "tpu".

    Inside `assume_device`, this is the assumed kind.
    """
    assumed = _assumed.get()
    if assumed is not None:
        return assumed
    if keras.backend.backend() == "jax":
        import jax

        return "gpu" if jax.default_backend() in ("gpu", "cuda", "rocm") else jax.default_backend()
    import tensorflow as tf

    found = {device.device_type.lower() for device in tf.config.list_logical_devices()}
    return next((kind for kind in ("tpu", "gpu") if kind in found), "cpu")


@contextmanager
def assume_device(kind: str) -> Iterator[None]:
    """Makes `device_kind` return `kind` inside the `with` block, to trace for another device.

    Args:
        kind: "cpu", "gpu" or "tpu".

    Raises:
        ValueError: `kind` is another string.
    """
    if kind not in KINDS:
        raise ValueError(f"`kind` must be one of {KINDS}. Received: kind={kind!r}")
    token = _assumed.set(kind)
    try:
        yield
    finally:
        _assumed.reset(token)


def is_accelerator() -> bool:
    """Returns whether `device_kind` is "gpu" or "tpu"."""
    return device_kind() != "cpu"
