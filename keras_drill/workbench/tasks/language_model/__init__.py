"""The task of language models, which continue texts."""
