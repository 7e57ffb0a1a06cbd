"""Autoencoders: a line answers itself."""
