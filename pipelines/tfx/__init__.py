"""The components' functions as a pipeline of TensorFlow Extended, on Beam.

Needs the environment of `make test-tfx`: Python 3.10 and TFX 1.16, see `docs/how-to/pipelines-tfx.md`.
"""
