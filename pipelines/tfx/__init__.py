"""A pipeline for TensorFlow Extended (TFX) on Beam, with the functions of the tasks.

The package needs the environment of `make test-tfx`, see `docs/how-to/pipelines-tfx.md`.
"""
