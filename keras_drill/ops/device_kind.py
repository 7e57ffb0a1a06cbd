"""The kind of device that computes, which decides how work is cut and what XLA needs told."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import keras

KINDS = ("cpu", "gpu", "tpu")

_assumed: ContextVar[str | None] = ContextVar("assumed_device", default=None)


def device_kind() -> str:
    """Returns "cpu", "gpu" or "tpu": the kind of device that computes, or the assumed one."""
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
    """Traces for another kind of device than the present one.

    Args:
        kind: "cpu", "gpu" or "tpu".

    Raises:
        ValueError: There is no such kind.
    """
    if kind not in KINDS:
        raise ValueError(f"`kind` must be one of {KINDS}. Received: kind={kind!r}")
    token = _assumed.set(kind)
    try:
        yield
    finally:
        _assumed.reset(token)


def is_accelerator() -> bool:
    """Whether a GPU or TPU computes."""
    return device_kind() != "cpu"
