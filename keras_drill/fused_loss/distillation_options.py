"""Checks of the arguments of distillation."""

from typing import Any

from keras_drill.fused_loss.divergences import ForwardKL, JensenShannon, ReverseKL
from keras_drill.fused_loss.inputs import Distillation

DIVERGENCES = ("forward_kl", "reverse_kl", "jensen_shannon")


def make_distillation(
    divergence: str,
    beta: float,
    temperature: float,
    cross_entropy_weight: float,
    teacher: Any = None,
) -> Distillation:
    """Returns the `Distillation` of users' arguments.

    Args:
        divergence: One of `DIVERGENCES`.
        beta: Weight of the teacher in the Jensen-Shannon divergence.
        temperature, cross_entropy_weight, teacher: As in `Distillation`.

    Raises:
        ValueError: An argument is out of range.
    """
    if divergence not in DIVERGENCES:
        raise ValueError(
            f"`divergence` must be one of {DIVERGENCES}. Received: divergence={divergence!r}"
        )
    if not 0 < beta < 1:
        raise ValueError(
            '`beta` must be in (0, 1); its limits are the divergences "forward_kl" (0) and '
            f'"reverse_kl" (1). Received: beta={beta!r}'
        )
    check_temperature(temperature)
    check_cross_entropy_weight(cross_entropy_weight)
    chosen = {
        "forward_kl": ForwardKL(),
        "reverse_kl": ReverseKL(),
        "jensen_shannon": JensenShannon(beta),
    }[divergence]
    return Distillation(chosen, temperature, cross_entropy_weight, teacher)


def check_temperature(temperature: float) -> None:
    """Raises `ValueError` if a temperature is not positive and finite."""
    if not 0 < temperature < float("inf"):
        raise ValueError(
            f"`temperature` must be positive and finite. Received: temperature={temperature!r}"
        )


def check_cross_entropy_weight(weight: float) -> None:
    """Raises `ValueError` if the share of the cross-entropy is not in [0, 1)."""
    if not 0 <= weight < 1:
        raise ValueError(
            "`cross_entropy_weight` must be in [0, 1); with 1 the teacher would have no effect. "
            f"Received: cross_entropy_weight={weight!r}"
        )
