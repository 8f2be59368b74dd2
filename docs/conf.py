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
]
exclude_patterns = ["_build", "coverage", "examples", "real", "report", "reproduction"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
autosummary_generate = True
numpydoc_show_class_members = False
autodoc_typehints = "none"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_theme = "pydata_sphinx_theme"
html_title = f"crossfusion {version}"
html_show_sphinx = False
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False, "header_links_before_dropdown": 7}
html_sidebars = {"**": []}


def setup(app):
    """Render formulas as MathML, so that pages need no script and no network."""
    from docutils import nodes
    from docutils.utils.math.latex2mathml import tex2mathml

    def inline(writer, node):
        writer.body.append(tex2mathml(node.astext()))
        raise nodes.SkipNode

    def block(writer, node):
        writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
        raise nodes.SkipNode

    app.add_html_math_renderer("mathml", (inline, None), (block, None))
