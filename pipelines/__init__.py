"""Pipelines from raw text to a served model: `python -m pipelines.language_model --help`.

Run the pipelines from a checkout of the repository. They are not part of the installed package,
because other packages may also have a module named `pipelines`.
"""
