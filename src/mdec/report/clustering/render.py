"""Filling the described clustering into the page."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from mdec._support.optional import import_optional
from mdec.report.clustering.described import Description
from mdec.report.clustering.figures import criteria_figures, value_figures
from mdec.report.clustering.packed import packed
from mdec.report.clustering.svg import COLOURS, colour
from mdec.report.clustering.view_figures import (
    cluster_figure,
    histogram_figure,
    sample_figures,
)


def render_report(described: Description) -> str:
    """Return the report of a clustering as one HTML page that needs nothing else.

    It shows what `describe_clustering` gives. Names from the data are escaped, and its
    content policy allows no script but its own and no request at all.

    Parameters
    ----------
    described : Description
        What to show.

    Returns
    -------
    str
        The page.
    """
    jinja2 = import_optional("jinja2", needed_for="the report", install="mdec[report]")
    from markupsafe import Markup

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = _part("report.js")
    drawn = {
        **criteria_figures(described["selection"]),
        **value_figures(described),
        **sample_figures(described),
    }
    below = described["ambiguous_below"]
    return environment.from_string(_part("template.html")).render(
        **described,
        figures={name: Markup(svg) for name, svg in drawn.items()},
        cluster_figures=[
            Markup(cluster_figure(each["clusters"])) for each in described["views"]
        ],
        histograms=[
            Markup(histogram_figure(each["histogram"], below))
            for each in described["views"]
        ],
        colour=colour,
        style=Markup(_part("report.css") + colour_rules()),
        script=Markup(script),
        data=Markup(packed(described)),
        policy=content_policy(script),
    )


def _part(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def colour_rules() -> str:
    """Return the style rules that fill with the colours of the clusters."""
    return "".join(f".c{i}{{fill:{each}}}\n" for i, each in enumerate(COLOURS))


def content_policy(script: str) -> str:
    """Return a policy under which only this one script may run."""
    digest = hashlib.sha256(script.encode()).digest()
    known = base64.b64encode(digest).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{known}'; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
