"""Filling the described clustering into the page."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

from mdec._support.optional import import_optional
from mdec.report.clustering.described import Description
from mdec.report.clustering.figures import all_figures
from mdec.report.clustering.svg import colour


def render_report(described: Description) -> str:
    """Return the report of a clustering as one HTML page that needs nothing else.

    It shows what `describe_clustering` gives. Names from the data are escaped, and its
    content policy allows no script but its own and no request at all.
    """
    jinja2 = import_optional("jinja2", needed_for="the report", install="mdec[report]")
    from markupsafe import Markup

    source = (files(__package__) / "template.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    drawn = {name: Markup(svg) for name, svg in all_figures(described).items()}
    return environment.from_string(source).render(
        **described, figures=drawn, colour=colour, policy=content_policy(source)
    )


def content_policy(source: str) -> str:
    """Return a policy under which only the one script of the template may run."""
    script = re.search(r"<script>(.*?)</script>", source, flags=re.DOTALL)
    assert script is not None
    digest = hashlib.sha256(script.group(1).encode()).digest()
    known = base64.b64encode(digest).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{known}'; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
