import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

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
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "coverage", "examples", "real", "report", "reproduction", "training"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore = [("py:func", "torch.compile")]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_filename_map = {  # of two names that differ in case only, some disks would keep one
    "crossfusion.Rdr": "crossfusion.Rdr_result",
    "crossfusion.Cddr": "crossfusion.Cddr_result",
    "crossfusion.pathology.Normalizer": "crossfusion.pathology.Normalizer_class",
    "crossfusion.pathology.Encoder": "crossfusion.pathology.Encoder_class",
}
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_validation_checks = {"GL06", "GL07", "GL08", "PR01", "PR02", "PR10", "RT03", "SS01", "SS02", "SS06", "YD01"}

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "tutorials",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "tutorials.order",
    "image_scrapers": ("tutorials.scraper",),
    "image_srcset": ["2x"],
    "reset_modules": (),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "write_computation_times": False,
    "min_reported_time": 3600,  # the time that a shared machine took says nothing
    "show_signature": False,
    "notebook_extensions": set(),
    "capture_repr": (),
}

html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_theme = "pydata_sphinx_theme"
html_title = f"crossfusion {version}"
html_show_sphinx = False
html_show_search_summary = False  # it would fetch pages, which a browser does not do from disk
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "crossfusion"},
    "show_prev_next": False,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "show_nav_level": 1,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": []}


def setup(app):
    """Render formulas as MathML, so that pages need no script and no network; leave out hooks that others call."""
    from docutils import nodes
    from docutils.utils.math.latex2mathml import tex2mathml

    def inline(writer, node):
        writer.body.append(tex2mathml(node.astext()))
        raise nodes.SkipNode

    def block(writer, node):
        writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
        raise nodes.SkipNode

    def hooks(_app, _what, name, *_):
        return True if name.startswith("on_") else None  # None: as it would be

    app.connect("autodoc-skip-member", hooks)
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
