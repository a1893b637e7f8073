"""What the script of the page needs to show another number of clusters, small."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec.report.clustering.described import Column, Description, View
from mdec.report.clustering.svg import ABOVE, BELOW, COLOURS, FARTHEST, MIDDLE
from mdec.report.clustering.view_figures import NAME_LENGTH

# Shares are kept in steps of this: finer than the four digits of labels.csv.
_STEPS = 65535


def packed(described: Description) -> str:
    """Return the data of the page as JSON that no HTML parser takes for markup."""
    heatmap, drawn = described["heatmap"], described["signature_values"]
    selection = described["selection"]
    content = {
        "names": described["names"],
        "palette": COLOURS,
        "chosen": described["chosen"],
        "below": described["ambiguous_below"],
        "views": [_view(each, described) for each in described["views"]],
        "heat": {
            "rows": _whole(heatmap["rows"]),
            "position": _whole(heatmap["position"]),
            "full": heatmap["full"],
        },
        "bars": _whole(described["bars"]),
        "tracked": _whole(described["tracked"]),
        "axes": None if described["pca"] is None else described["pca"]["axes"],
        "columns": [_column(each) for each in described["columns"]],
        "signature": None,
        "cdf": {
            "levels": selection["levels"].tolist(),
            "shares": selection["cdf"].round(6).tolist(),
            "k": [row["n_clusters"] for row in selection["rows"]],
        },
    }
    if drawn is not None:
        share = np.clip(drawn["scores"] / FARTHEST, -1.0, 1.0)
        content["signature"] = {
            "names": drawn["names"],
            "levels": _whole(np.rint(127.0 * (share + 1.0)).astype(np.int64)),
            "colours": [BELOW, MIDDLE, ABOVE],
            "farthest": FARTHEST,
            "length": NAME_LENGTH,
        }
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _view(shown: View, described: Description) -> dict[str, Any]:
    drawn = described["signature_values"]
    rows = []
    if drawn is not None:
        place = {int(j): i for i, j in enumerate(drawn["features"])}
        rows = [place[int(j)] for j in shown["drawn_features"]]
    numbers = shown["numbers"]
    # Names of the clusters go to the page, with one more for no second choice.
    named = np.append(numbers, 0)
    return {
        "k": shown["n_clusters"],
        "order": [int(numbers[k]) for k in shown["cluster_order"]],
        "cluster": _whole(numbers[shown["labels"]]),
        "second": _whole(named[shown["second"]]),
        "own": _share(shown["own"]),
        "rival": _share(shown["rival"]),
        "sure": _share(shown["confidence"]),
        "features": rows,
    }


def _column(column: Column) -> dict[str, Any]:
    content: dict[str, Any] = {"name": column["name"], "kind": column["kind"]}
    if column["kind"] == "numbers":
        return content | {"values": _encoded(column["values"].astype("<f4"), "f32")}
    return content | {"levels": column["levels"], "codes": _whole(column["codes"])}


def _share(values: NDArray[np.floating]) -> dict[str, str]:
    return _encoded(np.rint(_STEPS * values).astype("<u2"), "u16")


def _whole(values: NDArray[np.integer]) -> dict[str, str]:
    if values.max(initial=0) < 256:
        return _encoded(values.astype(np.uint8), "u8")
    return _encoded(values.astype("<u2"), "u16")


def _encoded(values: NDArray[Any], kind: str) -> dict[str, str]:
    return {kind: base64.b64encode(values.tobytes()).decode()}
