"""A fitted model in a file: sealed, without pickle, all or nothing.

The file is an .npz archive of arrays beside a text of JSON, see
`mdec._support.archives`. It holds what `predict` needs, the training rows among it.
Models of one table and of several differ in the names of the arrays of their tables
only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mdec import __version__
from mdec._support import archives
from mdec._support.memory import MAX_BYTES
from mdec.base import name_of
from mdec.base.landmarks import pool_rows
from mdec.clustering import Clustering, Settings, check_n_clusters
from mdec.ensemble import Ensemble
from mdec.ensemble.plan import current_names, is_count
from mdec.prediction import Placement, TrainingRows
from mdec.preparation.recipes import RECIPES, Preparation
from mdec.rows.sources import canonical_rows
from mdec.selection.null import NullReference
from mdec.selection.rule import Candidate, KSelection

Arrays = dict[str, NDArray[Any]]

# Parameters of `MDEC` that come in after the members are made, and all settings that a
# file keeps.
AFTER_MEMBERS = ("n_clusters", "consensus", "weighting", "min_confidence")
_SETTINGS = (*AFTER_MEMBERS, "seed", "device")
# Parameters of the machine that fits, which is not the one that loads.
_MACHINE_PARAMETERS = {"n_jobs": None, "checkpoint": None, "verbose": 0}
# Arrays of KSelection and of its null reference.
_SELECTION = ("cdf", "levels", "partitions", "samples")
_REFERENCE = ("observed", "draws")
# Arrays of sparse training rows.
_SPARSE = ("data", "indices", "indptr")


def write_model(
    path: str | os.PathLike[str],
    model: Any,
    steps: Mapping[str, Any] | None = None,
    step_arrays: Mapping[str, NDArray[Any]] | None = None,
) -> None:
    """Write a fitted `MDEC` or `MultiViewMDEC`, and what is done to a table before it.

    The steps go into JSON beside the model, their arrays beside its own.
    """
    check_is_fitted(model, "clustering_")
    clustering: Clustering = model.clustering_
    _check_parameters(model._parameters, clustering)
    ensemble, placement = clustering.ensemble, clustering.placement
    if not isinstance(ensemble, Ensemble):
        raise ValueError(
            "the labels of this model lie on a Dask cluster and are not saved from "
            "there; fit an array or a file, or save model.ensemble_.gather()."
        )
    assert placement is not None  # of a fit
    arrays: Arrays = {
        "ensemble": ensemble.labels,
        "labels": clustering.labels,
        "confidence": clustering.confidence,
        "weights": clustering.weights,
        "means": placement.means,
        "plain_means": placement.plain_means,
    }
    tables = zip(placement.tables, _prefixes(ensemble), strict=True)
    of_tables: dict[str, Any] = {
        "n_features": [each.plan.n_features for each in placement.tables],
        "feature_names": [
            None if names is None else [str(name) for name in names]
            for names in model._feature_names
        ],
        "learnt": [_pack_rows(each, arrays, prefix) for each, prefix in tables],
    }
    if not ensemble.views:
        of_tables = {name: values[0] for name, values in of_tables.items()}
    settings = {name: getattr(clustering.settings, name) for name in _SETTINGS}
    content = {
        "kind": model._file_kind,
        "format": model._file_format,
        "mdec": __version__,
        "parameters": _plain_parameters(model._parameters.get_params(deep=False)),
        **_plain_parameters({"view_weights": getattr(model, "view_weights", None)}),
        "settings": _plain_parameters(settings),
        "ensemble": ensemble.to_json(),
        **of_tables,
        "selection": _pack_selection(clustering.selection, arrays),
        "steps": dict(steps or {}),
    }
    for name, array in (step_arrays or {}).items():
        arrays[f"steps_{name}"] = array
    archives.write_sealed(path, content, arrays)


def read_model(
    path: str | os.PathLike[str], kind: Any, max_bytes: int = MAX_BYTES
) -> tuple[Any, dict[str, Any], Arrays]:
    """Read what `write_model` wrote, and check that its parts fit each other.

    `kind` is the estimator that the file may hold, or several; a file that claims to
    unpack to more than `max_bytes` is refused. Returns the model, and the steps and
    their arrays, both empty if there were none.
    """
    name = os.fspath(path)
    content, arrays = archives.read_sealed(path, max_bytes)
    kinds = {each._file_kind: each for each in np.atleast_1d(kind)}
    # A file may claim to be a list, which no dictionary looks for.
    if content.get("kind") not in list(kinds):
        wanted = " or ".join(f"{each.__name__}.save" for each in kinds.values())
        raise archives.DamagedFileError(
            f"{name!r} is not an {' or '.join(kinds)}; give the model.npz of a result, "
            f"or what {wanted} wrote."
        )
    estimator = kinds[content["kind"]]
    known = range(1, estimator._file_format + 1)
    if content.get("format") not in known:
        raise ValueError(
            f"{name!r} has model format {content.get('format')} of mdec "
            f"{content.get('mdec')}, this version reads {known[-1]}; install that "
            "version, or fit again with this one."
        )
    with archives.parts_that_fit(path):
        parameters = _as_tuples(content["parameters"]) | _MACHINE_PARAMETERS
        model = estimator._from_parameters(parameters, content.get("view_weights"))
        clustering, names = _restore_clustering(content, arrays, parameters, max_bytes)
        _check_parameters(model._parameters, clustering)
        model._set_attributes(clustering, names)
        beside = [name for name in arrays if name.startswith("steps_")]
        step_arrays = {name.removeprefix("steps_"): arrays[name] for name in beside}
        return model, dict(content.get("steps", {})), step_arrays


def _prefixes(ensemble: Ensemble) -> list[str]:
    """Return what the names of each table's arrays begin with."""
    return [f"view_{number}_" for number in range(len(ensemble.views))] or [""]


def _check_parameters(parameters: Any, clustering: Clustering) -> None:
    """Raise unless a person could fit with these parameters, and these settings."""
    given, settings = parameters.get_params(deep=False), clustering.settings
    plan = clustering.rows[0].plan
    for name in ("base", "metric"):
        # Of a function of a person's own the file has the name.
        if given[name] == getattr(plan, name):
            del given[name]
    for values in ({}, {name: getattr(settings, name) for name in AFTER_MEMBERS}):
        type(parameters)(**given | values)._validate_params()
    check_n_clusters(settings.n_clusters, clustering.ensemble.n_samples)
    if not is_count(settings.seed, 0):
        raise ValueError("the seed is not a whole number")


def _restore_clustering(
    content: Mapping[str, Any],
    arrays: Arrays,
    parameters: Mapping[str, Any],
    max_bytes: int,
) -> tuple[Clustering, list[Any]]:
    """Return the clustering of a file, and the names of the features of each table."""
    ensemble = Ensemble.from_json(content["ensemble"], arrays["ensemble"])
    labels = arrays["labels"].astype(np.int32, casting="same_kind")
    n_clusters = int(labels.max()) + 1
    of_clusters = n_clusters, ensemble.n_base_clusters
    shapes = {
        "labels": (ensemble.n_samples,),
        "confidence": (ensemble.n_samples,),
        "weights": (ensemble.n_base_clusters,),
        "means": of_clusters,
        "plain_means": of_clusters,
    }
    for name, shape in shapes.items():
        each = arrays[name]
        numbers = each.dtype.kind in "fi" and np.isfinite(each).all()
        if not numbers or each.shape != shape or each.min() < 0.0:
            raise ValueError(f"{name} have another shape, or contain what is no weight")
    parts = [ensemble.view(i) for i in range(len(ensemble.views))] or [ensemble]
    sizes = [part.plan.n_features for part in parts]
    # The first layout of models of several tables has no such entry.
    of_tables = {"n_features": sizes if ensemble.views else sizes[0], **content}
    found, names, learnt = (
        of_tables[name] if ensemble.views else [of_tables[name]]
        for name in ("n_features", "feature_names", "learnt")
    )
    alike = found == sizes and len(learnt) == len(names) == len(parts)
    # Sparse rows take no room for features that none of them has; members' draws do.
    if not ensemble.members or not alike or 8 * sum(sizes) > max_bytes:
        raise ValueError("the plan is that of other data, or of more features")
    prefixes = _prefixes(ensemble)
    tables = tuple(map(_restore_rows, learnt, [arrays] * len(parts), parts, prefixes))
    means = (arrays[name] for name in ("weights", "means", "plain_means"))
    clustering = Clustering(
        ensemble,
        arrays["weights"],
        labels,
        n_clusters,
        arrays["confidence"],
        _restore_settings(content.get("settings"), parameters, parts[0]),
        _restore_selection(content["selection"], arrays),
        Placement(tables, ensemble.offsets, *means),
    )
    return clustering, list(map(_restore_names, names, sizes))


def _restore_settings(
    content: Mapping[str, Any] | None, parameters: Mapping[str, Any], part: Ensemble
) -> Settings:
    """Return the settings of the fit; early files have the parameters only."""
    if content is not None:
        return Settings(**_as_tuples(content) | {"device": "cpu"})
    plan, seed = part.plan, parameters["random_state"]
    found = {name: parameters[name] for name in _SETTINGS if name in parameters}
    found |= {"seed": plan.entropy if seed is None else seed, "device": "cpu"}
    return Settings(**found)


def _restore_names(names: Any, n_features: int) -> NDArray[Any] | None:
    if names is None:
        return None
    if len(names) != n_features or not all(isinstance(name, str) for name in names):
        raise ValueError("the features have other names")
    return np.array(names, dtype=object)


def _pack_rows(table: TrainingRows, arrays: Arrays, prefix: str) -> list[Any]:
    """Add the arrays of training rows to others, and return what else was learnt.

    Their names begin with the prefix.
    """
    rows = table.rows
    parts = {"rows": rows}
    if sparse.issparse(rows):
        parts = {f"rows_{name}": getattr(rows, name) for name in _SPARSE}
    learnt = list(table.learnt.values())
    orders = {f"order_{number}": each.order for number, each in enumerate(learnt)}
    arrays |= {prefix + name: array for name, array in (parts | orders).items()}
    return [
        {"power": each.power, "total": each.total, "center": each.center}
        for each in learnt
    ]


def _restore_rows(
    learnt: Any, arrays: Arrays, ensemble: Ensemble, prefix: str
) -> TrainingRows:
    """Return the training rows that `_pack_rows` took apart; raise if they are none."""
    plan = ensemble.plan
    found = {
        each["power"]: Preparation(**each, order=arrays[f"{prefix}order_{number}"])
        for number, each in enumerate(learnt)
    }
    powers = RECIPES[plan.preparation].drawn_powers if plan.preparation else ()
    if set(found) != set(powers):
        raise ValueError("the values are prepared otherwise")
    for each in found.values():
        ranks = np.array_equal(np.sort(each.order), np.arange(plan.n_features))
        plain = isinstance(each.center, bool) and isinstance(each.total, Real | None)
        if not (ranks and plain and each.order.dtype.kind == "i"):
            raise ValueError("the values are prepared otherwise")
    chosen = pool_rows(plan) if plan.base == "landmark" else slice(None)
    labels = ensemble.labels[chosen]
    shape = len(labels), plan.n_features
    rows: Any
    if f"{prefix}rows" in arrays:
        rows = numbers = arrays[f"{prefix}rows"]
    else:
        numbers, indices, indptr = (arrays[f"{prefix}rows_{name}"] for name in _SPARSE)
        rows = sparse.csr_array((numbers, indices, indptr), shape=shape)
        # SciPy looks at the lengths alone; places outside would be read as they are.
        rows.check_format(full_check=True)
        rows = canonical_rows(rows)
    floats = numbers.dtype in (np.float32, np.float64) and np.isfinite(numbers).all()
    if rows.shape != shape or not floats:
        raise ValueError("rows have another shape, or contain what is not a number")
    return TrainingRows(rows, found, labels, ensemble.members, plan)


def _plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON has them, or raise one sentence."""
    found = {}
    for name, value in parameters.items():
        try:
            found[name] = json.loads(json.dumps(value, default=_plain_value))
        except TypeError as error:
            raise ValueError(
                f"{name}={value!r} cannot be saved; set it to a plain value first, "
                f"such as model.set_params({name}=None), which changes no result of "
                "the fit."
            ) from error
    return found


def _plain_value(value: Any) -> Any:
    """Return a number of NumPy, the name of a function or a path; raise for others."""
    if isinstance(value, np.generic):
        return value.item()
    return name_of(value) if callable(value) else os.fspath(value)


def _as_tuples(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as they were before JSON made lists of tuples."""
    named = current_names(parameters)
    return {k: tuple(v) if isinstance(v, list) else v for k, v in named.items()}


def _pack_selection(
    selection: KSelection | None, arrays: Arrays
) -> dict[str, Any] | None:
    """Add the arrays of a selection to others, and return the rest."""
    if selection is None:
        return None
    null = selection.null
    arrays |= {f"k_{name}": getattr(selection, name) for name in _SELECTION}
    arrays |= {f"k_table_{name}": column for name, column in selection.table.items()}
    if null is not None:
        arrays |= {f"k_null_{name}": getattr(null, name) for name in _REFERENCE}
    return {
        "n_clusters": int(selection.n_clusters),
        "reason": selection.reason,
        "columns": list(selection.table),
        "p_value": None if null is None else float(null.p_value),
        "candidates": [asdict(each) for each in selection.candidates],
    }


def _restore_selection(
    content: Mapping[str, Any] | None, arrays: Arrays
) -> KSelection | None:
    """Return the selection that `_pack_selection` took apart."""
    if content is None:
        return None
    null = None
    if content["p_value"] is not None:
        found = {name: arrays[f"k_null_{name}"] for name in _REFERENCE}
        null = NullReference(**found, p_value=float(content["p_value"]))
    table = {name: arrays[f"k_table_{name}"] for name in content["columns"]}
    parts: dict[str, Any] = {name: arrays[f"k_{name}"] for name in _SELECTION}
    # Files of version 0.1 have none.
    parts["candidates"] = tuple(
        Candidate(int(each["n_clusters"]), float(each["score"]), str(each["sentence"]))
        for each in content.get("candidates", ())
    )
    selection = KSelection(
        content["n_clusters"], content["reason"], table, null=null, **parts
    )
    numbers = table["n_clusters"].shape
    shapes = {column.shape for column in table.values()}
    sizes = len(selection.cdf), len(selection.partitions)
    known = [selection.n_clusters] if is_count(selection.n_clusters, 1) else []
    if shapes != {numbers} or {*numbers} != {*sizes} or not known:
        raise ValueError("the numbers of clusters do not fit each other")
    return selection
