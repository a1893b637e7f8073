"""A fitted model in a file: sealed, without pickle, all or nothing.

The file is an .npz archive of arrays beside a text of JSON, see
`mdec._support.sealed`. It holds what `predict` needs, the training rows among it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mdec import __version__
from mdec._support.memory import MAX_BYTES
from mdec._support.sealed import (
    DamagedFileError,
    parts_that_fit,
    read_sealed,
    write_sealed,
)
from mdec.base.landmarks import pool_rows
from mdec.base.own import name_of
from mdec.ensemble import Ensemble
from mdec.estimator.settled import keep_firm
from mdec.prediction import Placement
from mdec.preparation.recipes import Preparation
from mdec.rows.sparse import canonical_rows
from mdec.selection.null import NullReference
from mdec.selection.rule import KSelection

Arrays = dict[str, NDArray[Any]]
Labels = NDArray[np.int32]

_KIND = "mdec model"
_FORMAT = 1

# Parameters that may be functions; a file keeps their names only.
_FUNCTIONS = ("base", "metric")
_PLAIN = (bool, int, float, str, type(None))
# Arrays of KSelection and of its null reference.
_MEASURED = ("cdf", "levels", "partitions", "samples")
_REFERENCE = ("observed", "draws")
# Arrays of sparse training rows.
_SPARSE = ("data", "indices", "indptr")


class KeptMixin:
    """The methods of an estimator that write it to a file and read it."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, all or nothing.

        Parameters
        ----------
        path : path-like
            The file, an .npz archive whatever its name; an old one is replaced at the
            end. It holds the rows of `fit` (with landmarks, those they were drawn
            from): give it to nobody who may not see them. Of a function of your own
            (`base`, `metric`) it holds the name: set the parameter before the loaded
            model is fitted again.
        """
        write_model(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Self:
        """Read a model that `save` or `mdec fit` wrote; nothing in it is executed.

        Parameters
        ----------
        path : path-like
            The file.
        max_bytes : int, default=4 GiB
            A file that claims to unpack to more is refused before it is.

        Returns
        -------
        MDEC
            With the parameters, attributes and predictions of the saved one.
        """
        model, steps, _ = read_model(path, cls, max_bytes)
        if steps.get("told"):
            warnings.warn(
                f"{os.fspath(path)!r} was fitted to values that were prepared first "
                f"({steps['told']}); do the same to new rows, or use mdec predict.",
                UserWarning,
                stacklevel=2,
            )
        return model


def write_model(
    path: str | os.PathLike[str],
    model: Any,
    steps: Mapping[str, Any] | None = None,
    step_arrays: Mapping[str, NDArray[Any]] | None = None,
) -> None:
    """Write a fitted model, and what is done to a table before it.

    Parameters
    ----------
    path : path-like
        The file.
    model : MDEC
        The model.
    steps : mapping, optional
        What goes into JSON beside it.
    step_arrays : mapping, optional
        Arrays beside it.
    """
    check_is_fitted(model, "ensemble_")
    if not isinstance(model.ensemble_, Ensemble):
        raise ValueError(
            "the labels of this model lie on a Dask cluster and are not saved from "
            "there; fit an array or a file, or save model.ensemble_.gather()."
        )
    content = {
        "kind": _KIND,
        "format": _FORMAT,
        "mdec": __version__,
        "parameters": plain_parameters(model),
        "ensemble": model.ensemble_.to_json(),
        "n_features": int(model.n_features_in_),
        "feature_names": _feature_names(model),
        "selection": None,
        "steps": dict(steps or {}),
    }
    arrays = result_arrays(model)
    content["learnt"] = placement_content(model._placement, arrays)
    if hasattr(model, "k_selection_"):
        content["selection"] = selection_content(model.k_selection_, arrays)
    for name, array in (step_arrays or {}).items():
        arrays[f"steps_{name}"] = array
    write_sealed(path, content, arrays)


def result_arrays(model: Any) -> Arrays:
    """Return the labels of the members and of the model, and how firm they are."""
    return {
        "ensemble": model.ensemble_.labels,
        "labels": model.consensus_labels_,
        "confidence": model.confidence_,
        "weights": model.cluster_weights_,
    }


def read_model(
    path: str | os.PathLike[str], kind: Any, max_bytes: int = MAX_BYTES
) -> tuple[Any, dict[str, Any], Arrays]:
    """Read what `write_model` wrote, and check that its parts fit each other.

    Parameters
    ----------
    path : path-like
        The file.
    kind : type
        The estimator to make.
    max_bytes : int
        A file that claims to unpack to more is refused.

    Returns
    -------
    model : MDEC
        The model.
    steps : dict
        What was beside it, empty if nothing was.
    step_arrays : dict of ndarray
        Arrays beside it.
    """
    name = os.fspath(path)
    content, arrays = read_sealed(path, max_bytes)
    if content.get("kind") != _KIND:
        raise DamagedFileError(
            f"{name!r} is no model of mdec; give the model.npz of a result, or what "
            "MDEC.save wrote."
        )
    if content.get("format") != _FORMAT:
        raise ValueError(
            f"{name!r} has model format {content.get('format')} of mdec "
            f"{content.get('mdec')}, this version reads {_FORMAT}; install that "
            "version, or fit again with this one."
        )
    with parts_that_fit(path):
        model = kind(**as_tuples(content["parameters"]))
        _restore(model, content, arrays)
        given = {n: a for n, a in arrays.items() if n.startswith("steps_")}
        beside = {n.removeprefix("steps_"): a for n, a in given.items()}
        return model, dict(content["steps"]), beside


def _restore(model: Any, content: Mapping[str, Any], arrays: Arrays) -> None:
    """Give an estimator the attributes of a fit."""
    ensemble = Ensemble.from_json(content["ensemble"], arrays["ensemble"])
    plan, n_features = ensemble.plan, content["n_features"]
    clusters = restored_clusters(model, ensemble, arrays)
    n_clusters = int(clusters.max()) + 1
    model._placement = restored_placement(
        content["learnt"], arrays, ensemble, arrays["weights"], n_clusters
    )
    if plan.n_features != n_features:
        raise ValueError("the plan is that of other data")
    names = content["feature_names"]
    if names is not None:
        if len(names) != n_features or not all(isinstance(n, str) for n in names):
            raise ValueError("the features have other names")
        model.feature_names_in_ = np.array(names, dtype=object)
    model.n_features_in_ = n_features
    model.base_ = plan.base
    keep_firm(model, n_clusters, model.min_confidence)
    if content["selection"] is not None:
        model.k_selection_ = restored_selection(content["selection"], arrays)


def restored_clusters(model: Any, ensemble: Ensemble, arrays: Arrays) -> Labels:
    """Give an estimator its clusters, confidence and weights; return the clusters."""
    clusters = arrays["labels"].astype(np.int32, casting="same_kind")
    shapes = {
        "labels": (ensemble.n_samples,),
        "confidence": (ensemble.n_samples,),
        "weights": (ensemble.n_base_clusters,),
    }
    check_shapes(arrays, shapes)
    if not ensemble.members or clusters.min() < 0:
        raise ValueError("no model has such parts")
    model.ensemble_, model.cluster_weights_ = ensemble, arrays["weights"]
    model.consensus_labels_, model.confidence_ = clusters, arrays["confidence"]
    return clusters


def placement_content(
    placement: Placement, arrays: Arrays, prefix: str = ""
) -> list[dict[str, Any]]:
    """Add the arrays of a placement to others, and return what else it has learnt.

    Their names begin with the prefix.
    """
    arrays |= _row_arrays(placement.rows, prefix)
    for name in ("means", "plain_means"):
        arrays[prefix + name] = getattr(placement, name)
    learnt = list(placement.learnt.values())
    for number, each in enumerate(learnt):
        arrays[f"{prefix}order_{number}"] = each.order
    return [_without(each, "order") for each in learnt]


def restored_placement(
    learnt: Sequence[Mapping[str, Any]],
    arrays: Arrays,
    ensemble: Ensemble,
    weights: NDArray[Any],
    n_clusters: int,
    prefix: str = "",
) -> Placement:
    """Return the placement that `placement_content` took apart; raise if it is none."""
    plan = ensemble.plan
    n_features = plan.n_features
    chosen = pool_rows(plan) if plan.base == "landmark" else slice(None)
    found = {
        each["power"]: Preparation(**each, order=arrays[f"{prefix}order_{number}"])
        for number, each in enumerate(learnt)
    }
    labels = ensemble.labels[chosen]
    shape = n_clusters, ensemble.n_base_clusters
    shapes = {"means": shape, "plain_means": shape}
    check_shapes(arrays, {prefix + name: size for name, size in shapes.items()})
    rows = _kept_rows(arrays, (len(labels), n_features), prefix)
    if plan.n_samples != ensemble.n_samples:
        raise ValueError("the plan is that of other data")
    if any(np.any(np.sort(p.order) != np.arange(n_features)) for p in found.values()):
        raise ValueError("the features have another order")
    return Placement(
        rows=rows,
        learnt=found,
        labels=labels,
        offsets=ensemble.offsets,
        members=ensemble.members,
        plan=plan,
        means=arrays[f"{prefix}means"],
        weights=weights,
        plain_means=arrays[f"{prefix}plain_means"],
    )


def _row_arrays(rows: Any, prefix: str) -> Arrays:
    """Return training rows as arrays: one, or the three of sparse ones."""
    if not sparse.issparse(rows):
        return {f"{prefix}rows": rows}
    return {f"{prefix}rows_{name}": getattr(rows, name) for name in _SPARSE}


def _kept_rows(arrays: Arrays, shape: tuple[int, int], prefix: str) -> Any:
    """Return the training rows of a file, or raise if they cannot be any."""
    rows: Any
    if f"{prefix}rows" in arrays:
        rows = numbers = arrays[f"{prefix}rows"]
    else:
        numbers, indices, indptr = (arrays[f"{prefix}rows_{name}"] for name in _SPARSE)
        rows = sparse.csr_array((numbers, indices, indptr), shape=shape)
        # SciPy looks at the lengths alone; places outside would be read as they are.
        rows.check_format(full_check=True)
        rows = canonical_rows(rows)
    if rows.shape != shape or numbers.dtype not in (np.float32, np.float64):
        raise ValueError("rows have another shape")
    if np.isnan(numbers).any():
        raise ValueError("rows hold what is no number")
    return rows


def check_shapes(arrays: Arrays, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise unless arrays of numbers have these shapes."""
    for name, shape in shapes.items():
        if arrays[name].shape != shape or arrays[name].dtype.kind not in "fi":
            raise ValueError(f"{name} have another shape")


def plain_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters as JSON has them, or raise one sentence."""
    found = {}
    for name, value in model.get_params(deep=False).items():
        plain = value
        if isinstance(value, np.generic):
            plain = value.item()
        elif isinstance(value, os.PathLike):
            plain = os.fspath(value)
        elif isinstance(value, tuple | list):
            plain = [_item(each) for each in value]
        elif name in _FUNCTIONS and callable(value):
            plain = name_of(value)
        elif isinstance(value, Mapping):
            plain = {str(key): _item(each) for key, each in value.items()}
        parts = plain if isinstance(plain, list) else [plain]
        parts = list(plain.values()) if isinstance(plain, dict) else parts
        if not all(isinstance(each, _PLAIN) for each in parts):
            raise ValueError(
                f"{name}={value!r} cannot be saved; set it to a plain value first, "
                f"such as model.set_params({name}=None), which changes no result of "
                "the fit."
            )
        found[name] = plain
    return found


def _item(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def as_tuples(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as they were before JSON made lists of tuples."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in parameters.items()}


def _feature_names(model: Any) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _without(record: Any, *left_out: str) -> dict[str, Any]:
    names = [field.name for field in fields(record) if field.name not in left_out]
    return {name: getattr(record, name) for name in names}


def selection_content(selection: KSelection, arrays: Arrays) -> dict[str, Any]:
    """Add the arrays of a selection to others, and return the rest."""
    for name in _MEASURED:
        arrays[f"k_{name}"] = getattr(selection, name)
    for name, column in selection.table.items():
        arrays[f"k_table_{name}"] = column
    null = selection.null
    if null is not None:
        for name in _REFERENCE:
            arrays[f"k_null_{name}"] = getattr(null, name)
    return {
        "n_clusters": int(selection.n_clusters),
        "reason": selection.reason,
        "columns": list(selection.table),
        "p_value": None if null is None else float(null.p_value),
    }


def restored_selection(content: Mapping[str, Any], arrays: Arrays) -> KSelection:
    """Return the selection that `selection_content` took apart."""
    null = None
    if content["p_value"] is not None:
        found = {name: arrays[f"k_null_{name}"] for name in _REFERENCE}
        null = NullReference(**found, p_value=content["p_value"])
    return KSelection(
        content["n_clusters"],
        content["reason"],
        {name: arrays[f"k_table_{name}"] for name in content["columns"]},
        **{name: arrays[f"k_{name}"] for name in _MEASURED},
        null=null,
    )
