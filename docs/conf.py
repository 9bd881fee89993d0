"""The documentation site: ``python -m sphinx -W -b html docs docs/_build/html``, offline."""

import os
import sys
from pathlib import Path

import fastpriv

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

os.environ["COLUMNS"] = "82"  # width of the help texts, whatever the terminal

project = "fastpriv"
author = "fastpriv developers"
copyright = "fastpriv developers"
version = release = fastpriv.__version__

extensions = [
    "generated",  # ours: the command line and the notions, from the code
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
]
exclude_patterns = ["_build"]
nitpicky = True  # a link that leads nowhere is an error

myst_heading_anchors = 3

autodoc_typehints = "none"  # the parameter lists say it in words
autosummary_generate = False  # the tables link to entries on the same page
numpydoc_show_class_members = False  # autodoc lists them

plot_formats = ["svg"]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_include_source = True
plot_rcparams = {"figure.figsize": (6.4, 4.0), "svg.hashsalt": "fastpriv"}
plot_apply_rcparams = True

html_theme = "furo"
html_title = f"fastpriv {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
