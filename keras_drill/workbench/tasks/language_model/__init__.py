"""Language models: models that continue texts."""
