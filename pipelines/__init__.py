"""Pipelines from raw text to a served model: `python -m pipelines.language_model --help`.

Run them from a checkout of the repository. They are not part of the installed package, because a
module of so common a name would collide with others.
"""
