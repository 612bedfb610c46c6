"""Configuration of the documentation site: `make docs` builds it, offline, and stops at the first warning."""

import re
import sys
import warnings
from pathlib import Path

import ocrep

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
from public_names import is_shown

project = "ocrep"
author = "The ocrep developers"
copyright = "The ocrep developers"
version = release = ocrep.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
root_doc = "index"
smartquotes = False
default_role = "py:obj"  # `PinvRegressor` in a docstring is a link
toc_object_entries_show_parents = "hide"
# The pages of execution times load a script from elsewhere.
exclude_patterns = [
    "_build",
    "gallery/README.rst",
    "study/figures",
    "sg_execution_times.rst",
    "gallery/sg_execution_times.rst",
]
templates_path = ["_templates"]

# Headings can be linked from other pages as `page.md#heading`.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
# Some file systems cannot tell this page from that of the class.
autosummary_filename_map = {"ocrep.parts.plan": "ocrep.parts.plan-function"}
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

nitpicky = True
# Names of other libraries have no page here; intersphinx would need the network.
# Data such as rules.GRIDS have none either; `ocrep.scan(…)` and `ocrep predict` are not names.
nitpick_ignore_regex = [("py:.*", r"(?!ocrep).*"), ("py:obj", r".*(\(.+\)|\s).*"), ("py:obj", r".*\.[A-Z]+")]

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1000,
    "download_all_examples": False,
    "reset_modules": ("matplotlib",),
    "backreferences_dir": None,
}
warnings.filterwarnings("ignore", message="Matplotlib is currently using agg")

html_theme = "pydata_sphinx_theme"
html_title = "ocrep"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "ocrep"},
    "navbar_align": "left",
    "show_toc_level": 2,
    "navigation_with_keys": True,
    "show_prev_next": True,
    "icon_links": [{"name": "Source", "url": "https://github.com/ocrep/ocrep", "icon": "fa-brands fa-github"}],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": [], "install": [], "start": []}

# `ocrep.significance` is an attribute of the package; autosummary imports it by that name.
sys.modules["ocrep.significance"] = ocrep.significance


def escape_trailing_underscores(app, what, name, obj, options, lines):
    """Keep Sphinx from reading fitted attributes such as gamma_ as links."""
    lines[:] = [
        line if line.lstrip().startswith((">>>", "...", "..")) else re.sub(r"(?<![\w`])(\w+)_(?![\w`])", r"\1\\_", line)
        for line in lines
    ]


def skip_what_rooms_call(app, what, name, obj, skip, options):
    """Leave out methods that only other rooms of the library call."""
    return None if is_shown(obj) else True


def drop_roles_of_citations(app, page, template, context, doctree):
    """Docutils gives lists of citations roles that their entries may not have."""
    context["body"] = re.sub(r' role="(list|doc-biblioentry)"(?=[^>]*class="citation)', "", context.get("body", ""))
    context["body"] = re.sub(r'(class="citation" id="[^"]*") role="doc-biblioentry"', r"\1", context["body"])


def setup(app):
    """Run after numpydoc, which has the default priority 500."""
    app.connect("autodoc-process-docstring", escape_trailing_underscores, priority=600)
    app.connect("html-page-context", drop_roles_of_citations)
    app.connect("autodoc-skip-member", skip_what_rooms_call)
