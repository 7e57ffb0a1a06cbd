"""From a corpus to a model that translates."""
