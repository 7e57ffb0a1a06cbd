"""Settings of the documentation site, which `make docs` builds."""

project = "keras_drill"
author = copyright = "The keras_drill authors"
extensions = ["myst_parser"]
exclude_patterns = ["serving"]
html_theme = "furo"
html_title = "keras_drill"
html_static_path = ["pictures"]
html_copy_source = False
html_show_sphinx = False
# Furo's sidebar and search need no network; system fonts need none either.
html_theme_options = {"navigation_with_keys": True}
myst_heading_anchors = 5
myst_enable_extensions = ["attrs_inline"]
# Markdown that links to files of the repository is read on GitHub, too.
suppress_warnings = ["myst.xref_missing_file"]
nitpicky = True
highlight_language = "text"


def _offer_notebook(app, docname, source):
    """Ends the page of a tutorial with its notebook."""
    folder, _, name = docname.partition("/")
    if folder == "tutorials" and name != "index":
        source[0] += f"\n{{download}}`Download this page as a notebook <generated/{name}.ipynb>`\n"


def setup(app):
    app.connect("source-read", _offer_notebook)
