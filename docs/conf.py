"""Settings of the site; `make docs` builds it, without a network."""

from __future__ import annotations

import sys
from pathlib import Path
from types import BuiltinFunctionType, MethodDescriptorType
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_site"))

from numpydoc import xref  # noqa: E402

import mdec  # noqa: E402

project = "mdec"
author = "The mdec developers"
copyright = f"2026, {author}"
version = release = mdec.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "mathematics",
    "measured",
    "live_demo",
]
exclude_patterns = ["_build", "_site", "_templates"]
templates_path = ["_templates"]
nitpicky = True
# Names of other packages in docstrings; no inventory of theirs is fetched.
nitpick_ignore_regex = [("py:.*", r"(sklearn|numpy|scipy|pandas|matplotlib)\..*")]

myst_enable_extensions = ["colon_fence", "dollarmath", "attrs_inline"]
myst_heading_anchors = 4
# A relative link to a file that is no page, such as a record, is offered as a download.
html_math_renderer = "mathml"

autosummary_generate = True
autodoc_typehints = "none"  # docstrings say types in words
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False  # the template lists them
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
xref.DEFAULT_LINKS.clear()  # they lead to other sites
numpydoc_xref_aliases = {
    "Ensemble": "mdec.Ensemble",
    "MDEC": "mdec.MDEC",
    "KSelection": "mdec.selection.KSelection",
    "NullReference": "mdec.selection.NullReference",
    "Table": "mdec.tables.Table",
    "Dataset": "mdec.datasets.Dataset",
    "DatasetInfo": "mdec.datasets.DatasetInfo",
    "RowSource": "mdec.rows.RowSource",
    "Study": "mdec.bench.study.Study",
    "ScoreTable": "mdec.bench.summary.ScoreTable",
    "Description": "mdec.report.Description",
    "RunNotes": "mdec.report.RunNotes",
}

# Every check but these; warnings stop the build.
numpydoc_validation_checks = {
    "all",
    "ES01",  # a summary that says everything needs no second paragraph
    "SA01",  # nor does every name have a relative
    "EX01",  # examples stand where they explain something
    "GL02",  # a short docstring closes on its last line
    "RT02",  # fit returns "self", as in scikit-learn
    "PR03",  # baselines name their own parameters before those that all share
}
numpydoc_validation_exclude = {
    r"\.RowSource",  # a protocol is never called
    r"\.(to|from)_json$",  # files are written and read by save and load
    r"\.Ensemble\.(gather|join|split)$",  # for code that also runs on a cluster
    r"\.Plan\.(kernel_of|refuse_foreign|samples)$",
    r"\.ScoreTable\.from_scores$",
}
numpydoc_validation_overrides = {
    # What is handed out and never made by hand describes attributes.
    "PR01": [r"\n *Attributes\n"],
}

html_theme = "pydata_sphinx_theme"
html_title = "mdec"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_theme_options: dict[str, Any] = {
    "logo": {
        "text": "mdec",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo-dark.svg",
        "alt_text": "mdec, start page",
    },
    "header_links_before_dropdown": 6,
    "navigation_with_keys": True,
    "show_prev_next": True,
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
# Pages that have none below them.
html_sidebars = {name: [] for name in ("index", "start")}

sphinx_gallery_conf = {
    "examples_dirs": [
        str(HERE.parent / "examples" / name) for name in ("tutorials", "gallery")
    ],
    "gallery_dirs": ["tutorials", "gallery"],
    "filename_pattern": r"plot_",
    "doc_module": ("mdec",),
    "backreferences_dir": "gallery/using",
    "image_scrapers": ("figures.captioned",),
    "within_subsection_order": "figures.ReadingOrder",
    "reset_modules": ("matplotlib", "figures.report_style"),
    "abort_on_example_error": True,
    "download_all_examples": False,
    # Its tables of times and of names would fetch scripts from elsewhere.
    "write_computation_times": False,
    "show_api_usage": False,
    "min_reported_time": 3600,
    "remove_config_comments": True,
    "capture_repr": (),
    "thumbnail_size": (480, 336),
}


def _tables_stand_alone(app: Any, name: str, text: list[str]) -> None:
    """Let the single tables of the results be pages that no list holds."""
    if name.startswith("results/") and "/tables/" in name:
        title = name.rpartition("/")[2].replace("_", " ")
        text[0] = f"---\norphan: true\n---\n\n# {title}\n\n{text[0]}"


def _is_foreign(
    app: Any, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what scikit-learn and Python add to a class."""
    home = getattr(getattr(member, "fget", member), "__module__", None) or ""
    built_in = isinstance(member, MethodDescriptorType | BuiltinFunctionType)
    return True if built_in or home.startswith("sklearn.") else None


def setup(app: Any) -> None:
    """Connect what this site does to its sources."""
    app.connect("autodoc-skip-member", _is_foreign)
    app.connect("source-read", _tables_stand_alone)
