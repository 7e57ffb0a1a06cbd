"""The components' functions as a pipeline of TensorFlow Extended, on Beam.

Needs the environment of `make test-tfx`, which `docs/how-to/pipelines-tfx.md` describes.
"""
