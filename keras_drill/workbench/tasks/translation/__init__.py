"""Translation: models that translate texts."""
