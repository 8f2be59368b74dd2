from crossfusion import __version__

project = "crossfusion"
author = "The crossfusion developers"
copyright = author
release = version = __version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
autosummary_generate = True
numpydoc_show_class_members = False
autodoc_typehints = "none"
html_theme = "pydata_sphinx_theme"
html_title = f"crossfusion {version}"
html_show_sphinx = False
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False}
html_sidebars = {"**": []}
