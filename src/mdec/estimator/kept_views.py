"""A fitted model of several views in a file, of the same parts as that of one table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mdec import __version__
from mdec._support.memory import MAX_BYTES
from mdec._support.sealed import (
    DamagedFileError,
    read_sealed,
    write_sealed,
)
from mdec.ensemble import Ensemble
from mdec.estimator import MDEC, kept
from mdec.estimator.settled import keep_firm
from mdec.prediction import JoinedPlacement
from mdec.weights import weights_of_view

_KIND = "mdec model of views"
_FORMAT = 1


def write_views(path: str | os.PathLike[str], model: Any) -> None:
    """Write a fitted model of several views.

    Parameters
    ----------
    path : path-like
        The file.
    model : MultiViewMDEC
        The model.
    """
    known = model._placement
    arrays = kept.result_arrays(model)
    arrays |= {"means": known.means, "plain_means": known.plain_means}
    content: dict[str, Any] = {
        "kind": _KIND,
        "format": _FORMAT,
        "mdec": __version__,
        "parameters": kept.plain_parameters(model._parameters),
        "view_weights": _plain_weights(model.view_weights),
        "ensemble": model.ensemble_.to_json(),
        "feature_names": [
            None if names is None else [str(name) for name in names]
            for names in model.feature_names_.values()
        ],
        "learnt": [
            kept.placement_content(placement, arrays, _prefix(number))
            for number, placement in enumerate(known.views)
        ],
        "selection": None,
    }
    if hasattr(model, "k_selection_"):
        content["selection"] = kept.selection_content(model.k_selection_, arrays)
    write_sealed(path, content, arrays)


def read_views(
    path: str | os.PathLike[str], max_bytes: int = MAX_BYTES
) -> tuple[dict[str, Any], kept.Arrays]:
    """Read what `write_views` wrote; raise if it is something else.

    Parameters
    ----------
    path : path-like
        The file.
    max_bytes : int
        A file that claims to unpack to more is refused.

    Returns
    -------
    content : dict
        What JSON made of it.
    arrays : dict of ndarray
        Its arrays.
    """
    content, arrays = read_sealed(path, max_bytes)
    if content.get("kind") != _KIND or content.get("format") != _FORMAT:
        raise DamagedFileError(
            f"{os.fspath(path)!r} is no model of several views that this version of "
            "mdec reads; write one with MultiViewMDEC.save."
        )
    return content, arrays


def restored_views(kind: Any, content: Mapping[str, Any], arrays: kept.Arrays) -> Any:
    """Return the model of several views that a file holds, or raise if it is none.

    Parameters
    ----------
    kind : type
        The estimator to make.
    content, arrays : mapping
        From `read_views`.

    Returns
    -------
    MultiViewMDEC
        Fitted.
    """
    own = MDEC(**kept.as_tuples(content["parameters"]))
    model = kind(own, view_weights=content["view_weights"])
    ensemble = Ensemble.from_json(content["ensemble"], arrays["ensemble"])
    clusters = kept.restored_clusters(model, ensemble, arrays)
    n_clusters = int(clusters.max()) + 1
    model.views_ = [view.name for view in ensemble.views]
    names = [None if n is None else np.array(n) for n in content["feature_names"]]
    model.feature_names_ = dict(zip(model.views_, names, strict=True))
    kept.check_shapes(
        arrays,
        dict.fromkeys(("means", "plain_means"), (n_clusters, ensemble.n_base_clusters)),
    )
    views = tuple(
        kept.restored_placement(
            learnt,
            arrays,
            ensemble.view(number),
            weights_of_view(ensemble, arrays["weights"], number),
            n_clusters,
            _prefix(number),
        )
        for number, learnt in enumerate(content["learnt"])
    )
    if len(views) != len(model.views_):
        raise ValueError("there are other views")
    model._placement = JoinedPlacement(
        views,
        ensemble.offsets,
        arrays["means"],
        arrays["weights"],
        arrays["plain_means"],
    )
    keep_firm(model, n_clusters, own.min_confidence)
    if content["selection"] is not None:
        model.k_selection_ = kept.restored_selection(content["selection"], arrays)
    return model


def _prefix(number: int) -> str:
    return f"view_{number}_"


def _plain_weights(
    weights: Mapping[str, float] | Sequence[float] | None,
) -> dict[str, float] | list[float] | None:
    if weights is None:
        return None
    if isinstance(weights, Mapping):
        return {name: float(weight) for name, weight in weights.items()}
    return [float(weight) for weight in weights]
