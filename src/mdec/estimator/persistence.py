"""A fitted model in a file: sealed, without pickle, all or nothing.

The file is an .npz archive of arrays beside a text of JSON, see
`mdec._support.archives`. It holds what `predict` needs, the training rows among it.
Names of arrays begin with what they belong to: ``steps_`` are those of the steps before
the model, ``k_`` those of the choice of K, and ``view_0_`` those of the first of
several tables. What belongs to tables is a list in the text if there are several.
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
from mdec.ensemble import DistributedEnsemble, Ensemble
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
# Arrays of a clustering, of its placement, of the choice of K and its null reference,
# and of sparse rows; and what else a preparation has learnt.
_CLUSTERING = ("labels", "confidence", "weights")
_PLACEMENT = ("means", "plain_means")
_SELECTION = ("cdf", "levels", "partitions", "samples")
_REFERENCE = ("observed", "draws")
_SPARSE = ("data", "indices", "indptr")
_LEARNT = ("power", "total", "center")


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
    names = model._feature_names
    if isinstance(ensemble, DistributedEnsemble):
        raise ValueError(
            "the labels of this model lie on a Dask cluster and are not saved from "
            "there; fit an array or a file, or save model.ensemble_.gather()."
        )
    assert placement is not None  # of a fit
    arrays: Arrays = {"ensemble": ensemble.labels}
    arrays |= _named("", clustering, _CLUSTERING) | _named("", placement, _PLACEMENT)
    for i, table in enumerate(placement.tables):
        prefix = f"view_{i}_" if ensemble.views else ""
        if sparse.issparse(table.rows):
            arrays |= _named(f"{prefix}rows_", table.rows, _SPARSE)
        else:
            arrays[f"{prefix}rows"] = table.rows
        for number, each in enumerate(table.learnt.values()):
            arrays[f"{prefix}order_{number}"] = each.order
    of_tables: dict[str, Any] = {
        "n_features": [each.plan.n_features for each in placement.tables],
        "feature_names": [n if n is None else list(map(str, n)) for n in names],
        "learnt": [
            [_named("", each, _LEARNT) for each in table.learnt.values()]
            for table in placement.tables
        ],
    }
    if not ensemble.views:
        of_tables = {name: values[0] for name, values in of_tables.items()}
    content = {
        "kind": model._file_kind,
        "format": model._file_format,
        "mdec": __version__,
        "parameters": _plain_parameters(model._parameters.get_params(deep=False)),
        **_plain_parameters({"view_weights": getattr(model, "view_weights", None)}),
        "settings": _plain_parameters(_named("", clustering.settings, _SETTINGS)),
        "ensemble": ensemble.to_json(),
        **of_tables,
        "selection": _pack_selection(clustering.selection, arrays),
        "steps": dict(steps or {}),
    }
    arrays |= {f"steps_{name}": array for name, array in (step_arrays or {}).items()}
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
    if content.get("format") not in range(1, estimator._file_format + 1):
        raise ValueError(
            f"{name!r} has model format {content.get('format')} of mdec "
            f"{content.get('mdec')}, this version reads {estimator._file_format}; "
            "install that version, or fit again with this one."
        )
    with archives.parts_that_fit(path):
        parameters = _as_tuples(content["parameters"]) | _MACHINE_PARAMETERS
        model = estimator._from_parameters(parameters, content.get("view_weights"))
        clustering, names = _restore_clustering(content, arrays, parameters, max_bytes)
        _check_parameters(model._parameters, clustering)
        model._set_attributes(clustering, names)
        return model, dict(content.get("steps", {})), _under("steps_", arrays)


def _named(prefix: str, parts: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Return attributes by their names after a prefix."""
    return {prefix + name: getattr(parts, name) for name in names}


def _under(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays whose names begin with a prefix, without it."""
    mine = [name for name in arrays if name.startswith(prefix)]
    return {name.removeprefix(prefix): arrays[name] for name in mine}


def _require(fitting: Any, part: str) -> None:
    """Raise unless a part of a file fits the others."""
    if not fitting:
        raise ValueError(f"{part} have another shape, or are none")


def _check_parameters(parameters: Any, clustering: Clustering) -> None:
    """Raise unless a person could fit with these parameters, and these settings."""
    given, settings = parameters.get_params(deep=False), clustering.settings
    plan = clustering.rows[0].plan
    for name in ("base", "metric"):
        # Of a function of a person's own the file has the name.
        if given[name] == getattr(plan, name):
            del given[name]
    for values in ({}, _named("", settings, AFTER_MEMBERS)):
        type(parameters)(**given | values)._validate_params()
    check_n_clusters(settings.n_clusters, clustering.ensemble.n_samples)
    _require(is_count(settings.seed, 0), "the seeds")


def _restore_clustering(
    content: Mapping[str, Any],
    arrays: Arrays,
    parameters: Mapping[str, Any],
    max_bytes: int,
) -> tuple[Clustering, list[Any]]:
    """Return the clustering of a file, and the names of the features of each table."""
    ensemble = Ensemble.from_json(content["ensemble"], arrays["ensemble"])
    labels = arrays["labels"].astype(np.int32, casting="same_kind")
    of_samples, of_base = (ensemble.n_samples,), (ensemble.n_base_clusters,)
    of_clusters = int(labels.max()) + 1, *of_base
    shapes = of_samples, of_samples, of_base, of_clusters, of_clusters
    for name, shape in zip((*_CLUSTERING, *_PLACEMENT), shapes, strict=True):
        each = arrays[name]
        numbers = each.dtype.kind in "fi" and np.isfinite(each).all()
        _require(numbers and each.shape == shape and each.min() >= 0.0, name)
    parts = [ensemble.view(i) for i in range(len(ensemble.views))] or [ensemble]
    sizes = [part.plan.n_features for part in parts]
    # The first layout of models of several tables has no such entry.
    of_tables = {"n_features": sizes if ensemble.views else sizes[0], **content}
    found, names, learnt = (
        of_tables[name] if ensemble.views else [of_tables[name]]
        for name in ("n_features", "feature_names", "learnt")
    )
    _require(found == sizes and len(learnt) == len(names) == len(parts), "tables")
    # Sparse rows take no room for features that none of them has; members' draws do.
    _require(ensemble.members and 8 * sum(sizes) <= max_bytes, "members")
    for texts, size in zip(names, sizes, strict=True):
        words = all(isinstance(text, str) for text in texts or ())
        _require(texts is None or (words and len(texts) == size), "names")
    several = [_under(f"view_{i}_", arrays) for i in range(len(ensemble.views))]
    own, weights = several or [arrays], arrays["weights"]
    clustering = Clustering(
        ensemble,
        weights,
        labels,
        of_clusters[0],
        arrays["confidence"],
        _restore_settings(content.get("settings"), parameters, parts[0]),
        _restore_selection(content["selection"], _under("k_", arrays)),
        Placement(
            tuple(map(_restore_rows, learnt, own, parts)),
            ensemble.offsets,
            weights,
            *(arrays[name] for name in _PLACEMENT),
        ),
    )
    return clustering, [n if n is None else np.array(n, dtype=object) for n in names]


def _restore_settings(
    content: Mapping[str, Any] | None, parameters: Mapping[str, Any], part: Ensemble
) -> Settings:
    """Return the settings of the fit; early files have the parameters only."""
    if content is None:
        seed = parameters["random_state"]
        content = {
            name: parameters[name] for name in AFTER_MEMBERS if name in parameters
        }
        content |= {"seed": part.plan.entropy if seed is None else seed}
    return Settings(**_as_tuples(content) | {"device": "cpu"})


def _restore_rows(learnt: Any, arrays: Arrays, ensemble: Ensemble) -> TrainingRows:
    """Return the training rows of one table from its arrays."""
    plan = ensemble.plan
    found = {
        each["power"]: Preparation(**each, order=arrays[f"order_{number}"])
        for number, each in enumerate(learnt)
    }
    powers = RECIPES[plan.preparation].drawn_powers if plan.preparation else ()
    _require(set(found) == set(powers), "preparations")
    for each in found.values():
        ranks = np.array_equal(np.sort(each.order), np.arange(plan.n_features))
        plain = isinstance(each.center, bool) and isinstance(each.total, Real | None)
        _require(ranks and plain and each.order.dtype.kind == "i", "preparations")
    labels = ensemble.labels
    if plan.base == "landmark":
        labels = labels[pool_rows(plan)]
    shape = len(labels), plan.n_features
    rows: Any
    if "rows" in arrays:
        rows = numbers = arrays["rows"]
    else:
        parts = numbers, *_ = tuple(arrays[f"rows_{name}"] for name in _SPARSE)
        rows = sparse.csr_array(parts, shape=shape)
        # SciPy looks at the lengths alone; places outside would be read as they are.
        rows.check_format(full_check=True)
        rows = canonical_rows(rows)
    floats = numbers.dtype in (np.float32, np.float64) and np.isfinite(numbers).all()
    _require(rows.shape == shape and floats, "rows")
    return TrainingRows(rows, found, labels, ensemble.members, plan)


def _plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON has them, or raise one sentence."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        return name_of(value) if callable(value) else os.fspath(value)

    found = {}
    for name, value in parameters.items():
        try:
            found[name] = json.loads(json.dumps(value, default=plain))
        except TypeError as error:
            raise ValueError(
                f"{name}={value!r} cannot be saved; set it to a plain value first, "
                f"such as model.set_params({name}=None), which changes no result of "
                "the fit."
            ) from error
    return found


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
    arrays |= _named("k_", selection, _SELECTION)
    arrays |= {f"k_table_{name}": column for name, column in selection.table.items()}
    if null is not None:
        arrays |= _named("k_null_", null, _REFERENCE)
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
        found = {name: arrays[f"null_{name}"] for name in _REFERENCE}
        null = NullReference(**found, p_value=float(content["p_value"]))
    table = {name: arrays[f"table_{name}"] for name in content["columns"]}
    parts: dict[str, Any] = {name: arrays[name] for name in _SELECTION}
    # Files of version 0.1 have none.
    parts["candidates"] = tuple(
        Candidate(int(each["n_clusters"]), float(each["score"]), str(each["sentence"]))
        for each in content.get("candidates", ())
    )
    n_clusters, shapes = content["n_clusters"], {each.shape for each in table.values()}
    sizes = {len(parts["cdf"]), len(parts["partitions"]), *table["n_clusters"].shape}
    _require(is_count(n_clusters, 1) and len(shapes) == len(sizes) == 1, "criteria")
    return KSelection(n_clusters, content["reason"], table, null=null, **parts)
