"""A pipeline of TensorFlow Extended (TFX) on Beam, with the functions of this package's components.

The package needs the environment of `make test-tfx`, see `docs/how-to/pipelines-tfx.md`.
"""
