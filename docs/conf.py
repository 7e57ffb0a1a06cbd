"""Settings of the documentation site, which `make docs` builds."""

from docs.write_notebooks import GENERATED, read_outputs, show_outputs

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


def _add_outputs(app, docname, source):
    """Shows what the code of a tutorial prints and draws, and offers its notebook."""
    folder, _, name = docname.partition("/")
    if folder == "tutorials" and name != "index":
        page = show_outputs(source[0], read_outputs(name), name, GENERATED)
        offer = f"{{download}}`Download this page as a notebook <generated/{name}.ipynb>`"
        source[0] = f"{page}\n{offer}\n"


def setup(app):
    app.connect("source-read", _add_outputs)
