"""From a corpus to a language model."""
