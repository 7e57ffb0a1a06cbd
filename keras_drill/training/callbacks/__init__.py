"""Callbacks of the training loop."""
