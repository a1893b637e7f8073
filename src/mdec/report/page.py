"""The page: tables, frames of figures and the data of its script, in the template."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.arrays import Array
from mdec._support.optional import import_optional
from mdec.confidence import AMBIGUOUS
from mdec.report.compute import Description
from mdec.report.layout import COLOURS, SIZE, colour, radius
from mdec.report.signatures import Record

# What the page says of one solution, by the names of their macros in parts.html.
PARTS = ("facts", "clusters", "signatures", "features", "known", "again")

# Shares are kept in steps of this: finer than the four digits of labels.csv.
_STEPS = 65535

# Standard deviations from the mean that have the darkest colours.
FARTHEST = 2.5


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
    from markupsafe import Markup

    script = _read("shared.js") + _read("report.js")
    clustering, notes = described["clustering"], described["notes"]
    context = {
        "selection": clustering.criteria,
        "n_clusters": clustering.n_clusters,
        "settings": notes.settings,
        "command": notes.again,
    }
    page: str = (
        _environment()
        .get_template("template.html")
        .render(
            **described,
            **context,
            shown=described["solutions"][described["chosen"]],
            style=Markup(_read("shared.css") + _read("report.css")),
            script=Markup(script),
            data=Markup(pack_data(described, context)),
            policy=content_policy(script),
        )
    )
    return page


@cache
def _environment() -> Any:
    """Return what the templates are filled with; they are compiled once."""
    jinja2 = import_optional("jinja2", needed_for="the report", install="mdec[report]")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"colour": colour, "map_size": SIZE}
    environment.globals["ambiguous_below"] = AMBIGUOUS
    return environment


def _read(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def content_policy(script: str) -> str:
    """Return a policy under which only this one script may run."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def pack_data(described: Description, context: dict[str, Any]) -> str:
    """Return what the script draws, for all numbers of clusters, as JSON.

    No HTML parser takes it for markup. `context` is that of `render_parts`.
    """
    values, solutions = described["signature_values"], described["solutions"]
    used = [] if values is None else values["features"].tolist()
    selection, chosen = described["clustering"].criteria, described["chosen"]
    maps = [each for each in (described["map"], described["pca"]) if each]
    # One dendrogram of each half is cut into all numbers: clusters join finer ones.
    finest = solutions[-1]["halves"]
    packed = []
    for number, shown in enumerate(solutions):
        joins = np.zeros((len(finest), int(finest.max()) + 1), dtype=np.int32)
        joins[np.arange(len(finest))[:, None], finest] = shown["halves"]
        wanted = shown["markers"]["features"].tolist()
        own = {"joins": joins, "features": [used.index(j) for j in wanted if j in used]}
        if number != chosen:
            own["parts"] = render_parts(shown, **context)
        packed.append(pack_clusters(shown) | own)
    as_it_is = (
        "names",
        "bars",
        "chosen",
        "tracked",
        "columns",
        "criteria",
        "histograms",
    )
    content = {name: described[name] for name in as_it_is} | {
        "palette": COLOURS,
        "below": AMBIGUOUS,
        "finest": finest,
        "solutions": packed,
        "position": described["tree"]["position"],
        "radius": radius(len(described["names"])),
        # In tenths of a unit of the figure.
        "maps": [np.rint(10.0 * each["places"]).astype(int) for each in maps],
        "axes": maps[-1]["axes"],
        "signature": values
        and {
            "names": values["names"],
            "levels": contrast_levels(values["scores"]),
            "farthest": FARTHEST,
        },
        "suggested": selection.n_clusters,
        "cdf": {
            "levels": selection.levels.tolist(),
            "shares": selection.cdf.round(6).tolist(),
        },
    }
    return to_json(content).replace("<", "\\u003c")


def pack_clusters(shown: Record) -> dict[str, Any]:
    """Return clusters as the script takes them, with those of its halves to come."""
    numbers, markers = shown["numbers"], shown["markers"]
    # Names of the clusters go to the page, with one more for no second choice.
    names = np.append(numbers, 0)
    return {
        "k": shown["n_clusters"],
        "cluster": numbers[shown["labels"]],
        "second": names[shown["second"]],
        "sure": np.rint(_STEPS * shown["confidence"]).astype(int),
        "clusters": shown["clusters"],
        "histogram": shown["histogram"].tolist(),
        "dots": {
            "names": markers["names"],
            "clusters": numbers[shown["cluster_order"]].tolist(),
            "effects": contrast_levels(markers["effects"]),
            "shares": np.rint(255.0 * markers["shares"]).astype(int),
        },
    }


def contrast_levels(scores: Array) -> NDArray[np.uint8]:
    """Map standard deviations from the mean to 255 levels of colour.

    Examples
    --------
    >>> contrast_levels(np.array([-9.0, 0.0, 2.5]))
    array([  0, 127, 254], dtype=uint8)
    """
    share = np.clip(scores / FARTHEST, -1.0, 1.0)
    return np.rint(127.0 * (share + 1.0)).astype(np.uint8)


def to_json(content: Any) -> str:
    """Return what a script takes: arrays as it unpacks them, and the rest as it is."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False, default=pack)


def pack(values: NDArray[Any]) -> dict[str, str]:
    """Return numbers as the script unpacks them: fractions, or whole numbers from 0."""
    kind, code = ("f32", "<f4") if values.dtype.kind == "f" else ("u16", "<u2")
    if kind == "u16" and values.max(initial=0) < 256:
        kind, code = "u8", "u1"
    return {kind: base64.b64encode(values.astype(code).tobytes()).decode()}


def render_parts(shown: Record, **context: Any) -> dict[str, str]:
    """Return what the page shows of one solution, by the names that follow K.

    Parameters
    ----------
    shown : Record
        One that is not on the page.
    **context
        As in `render_report`: `selection`, `command`, `n_clusters` and `settings`.

    Returns
    -------
    dict of str
        HTML that the script of the page puts in its places.
    """
    parts = _environment().get_template("parts.html").make_module(context)
    return {name: str(getattr(parts, name)(shown)) for name in PARTS}
