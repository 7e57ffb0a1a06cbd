"""Checks for combinations of options that are not allowed."""

from typing import TYPE_CHECKING

from keras_drill.workbench.tasks.config.head_sections import HeadConfig
from keras_drill.workbench.tasks.config.option import suggest
from keras_drill.workbench.tasks.errors import ConfigError

if TYPE_CHECKING:
    from keras_drill.workbench.tasks.config.run_config import RunConfig

STRATEGIES = ("none", "mirrored", "multi-worker", "tpu")  # without importing TensorFlow


def check_training(config: "RunConfig") -> None:
    """Raises `ConfigError` if options of the training contradict each other."""
    strategy = config.training.strategy
    if strategy in ("parameter-server", "ps"):
        raise ConfigError(
            "option training.strategy cannot name parameter servers, with which Keras 3 does not "
            "train; use 'multi-worker', which keeps all variables on each worker. "
            f"Received: {strategy!r}"
        )
    if strategy not in STRATEGIES:
        raise ConfigError(
            f"option training.strategy cannot be {strategy!r}{suggest(strategy, STRATEGIES)}"
        )
    if strategy != "none" and config.optimizer.accumulate_steps > 1:
        raise ConfigError(
            "option optimizer.accumulate_steps must be 1 with training.strategy = "
            f"{strategy!r}, because Keras accumulates no gradients there; several replicas also "
            f"make larger batches. Received: {config.optimizer.accumulate_steps}"
        )
    interval = config.optimizer.nonmonotone_interval
    if (
        config.training.stopping == "non-monotone"
        and config.optimizer.kind == "nt-asgd"
        and interval
    ):
        raise ConfigError(
            "option training.stopping must be 'patience' with optimizer.nonmonotone_interval = "
            f"{interval}, because averaging begins by the non-monotone criterion. "
            "Received: 'non-monotone'"
        )
    number, kept = config.training.average_checkpoints, config.training.keep_checkpoints
    if number > kept:
        raise ConfigError(
            f"option training.average_checkpoints must be at most training.keep_checkpoints = "
            f"{kept}. Received: {number}"
        )
    if number > 1 and config.optimizer.kind == "nt-asgd":
        raise ConfigError(
            "option training.average_checkpoints must be 0 with optimizer.kind = 'nt-asgd', which "
            f"averages the weights itself. Received: {number}"
        )
    if number > 1 and config.head.has_senses and config.senses.dynamic:
        raise ConfigError(
            "option training.average_checkpoints must be 0 with senses.dynamic = true, because "
            f"senses move between words from checkpoint to checkpoint. Received: {number}"
        )


def check_head(config: "RunConfig", output_dim: int) -> None:
    """Raises `ConfigError` if options of the output layer contradict each other.

    Args:
        config: The options.
        output_dim: Size of the hidden states; 0 for the size of the embeddings.
    """
    backbone, head, senses = config.backbone, config.head, config.senses
    if head.kind == "mos" and head.tied and head.context_dim not in (0, backbone.embedding_dim):
        raise ConfigError(
            "option head.context_dim must be 0 or backbone.embedding_dim = "
            f"{backbone.embedding_dim} with head.tied = true. Received: {head.context_dim}"
        )
    if _compares_hidden_with_embedding(head) and (output_dim not in (0, backbone.embedding_dim)):
        raise ConfigError(
            f"option backbone.output_dim must be 0 or backbone.embedding_dim = "
            f"{backbone.embedding_dim} with head.kind = {head.kind!r}. Received: {output_dim}"
        )
    if head.kind == "described" and head.embedding_dropout and not head.residual_to_input:
        raise ConfigError(
            "option head.embedding_dropout must be 0 with head.residual_to_input = false, because "
            f"the labels then have no embeddings. Received: {head.embedding_dropout}"
        )
    if not head.has_senses:
        return
    if senses.max_senses < senses.min_senses:
        raise ConfigError(
            f"option senses.max_senses must be at least senses.min_senses = {senses.min_senses}. "
            f"Received: {senses.max_senses}"
        )
    if not senses.min_senses <= senses.per_word <= senses.max_senses:
        raise ConfigError(
            f"option senses.per_word must be from senses.min_senses = {senses.min_senses} to "
            f"senses.max_senses = {senses.max_senses}. Received: {senses.per_word}"
        )
    if head.kind == "drill-kerbs" and head.tied and senses.weighting == "posterior":
        raise ConfigError(
            "option senses.weighting must be 'usage' with head.kind = 'drill-kerbs', because the "
            "posterior requires an output layer without a label encoder. Received: 'posterior'"
        )


def _compares_hidden_with_embedding(head: HeadConfig) -> bool:
    """Whether hidden states must have the width of the shared embedding."""
    if head.kind in ("drill", "drill-kerbs") and head.encode_hidden:
        return False
    return (
        head.kind in ("tied", "drill", "described", "kerbs", "drill-kerbs")
        and head.shares_embedding
    )
