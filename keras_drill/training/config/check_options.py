"""Options that are each allowed, but not together."""

from keras_drill.training.config.backbone_config import BackboneConfig
from keras_drill.training.config.head_config import HeadConfig
from keras_drill.training.config.senses_config import SensesConfig
from keras_drill.training.config_error import ConfigError


def check_options(backbone: BackboneConfig, head: HeadConfig, senses: SensesConfig) -> None:
    """Raises `ConfigError` for a contradiction between options of the output layer."""
    if head.kind == "mos" and head.tied and head.context_dim not in (0, backbone.embedding_dim):
        raise ConfigError(
            "option head.context_dim must be 0 or backbone.embedding_dim = "
            f"{backbone.embedding_dim} where labels are tied, not {head.context_dim}"
        )
    if _compares_hidden_with_embedding(head) and (
        backbone.output_dim not in (0, backbone.embedding_dim)
    ):
        raise ConfigError(
            f"option backbone.output_dim must be 0 or backbone.embedding_dim = "
            f"{backbone.embedding_dim} with head.kind = {head.kind!r}, not {backbone.output_dim}"
        )
    if head.label_smoothing and (head.has_senses or head.kind == "mos"):
        raise ConfigError(
            f"option head.label_smoothing must be 0 with head.kind = {head.kind!r}, "
            f"not {head.label_smoothing}"
        )
    if not head.has_senses:
        return
    if senses.max_senses < senses.min_senses:
        raise ConfigError(
            f"option senses.max_senses must be at least senses.min_senses = {senses.min_senses}, "
            f"not {senses.max_senses}"
        )
    if not senses.min_senses <= senses.per_word <= senses.max_senses:
        raise ConfigError(
            f"option senses.per_word must be from senses.min_senses = {senses.min_senses} to "
            f"senses.max_senses = {senses.max_senses}, not {senses.per_word}"
        )
    if head.kind == "drill-kerbs" and head.tied and senses.weighting == "posterior":
        raise ConfigError(
            "option senses.weighting must be 'usage' with head.kind = 'drill-kerbs': the posterior "
            "needs senses that are compared without a label encoder"
        )


def _compares_hidden_with_embedding(head: HeadConfig) -> bool:
    """Whether hidden states must have the width of the shared embedding."""
    if head.kind in ("drill", "drill-kerbs") and head.encode_hidden:
        return False
    return head.kind in ("tied", "drill", "kerbs", "drill-kerbs") and head.shares_embedding
