"""Pipelines from raw text to a served model: `python -m pipelines.language_model --help`.

They are run from a checkout of the repository, and are not part of the installed package: a
module with so common a name would collide with others.
"""
