"""Autoencoders: models that reconstruct lines."""
