"""A result that is explored: other clusters, names, features, new samples."""

from __future__ import annotations

import base64
import json
import re
from collections import OrderedDict
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse

from mdec._support.files import claim_folder, replace_together, write_atomically
from mdec._support.random import member_stream
from mdec.app.folder import Folder, read_summary
from mdec.clustering import Clustering, Settings, cluster_ensemble
from mdec.confidence import AMBIGUOUS
from mdec.consensus import CONSENSUS
from mdec.ensemble import Ensemble
from mdec.report.compute import (
    LISTED_FEATURES,
    LISTED_SIGNATURES,
    PAGE_SAMPLES,
    draw_from_clusters,
)
from mdec.report.page import pack_live, render_parts
from mdec.report.signatures import moments, separating_features, signatures
from mdec.report.solutions import describe_solution, match_numbers
from mdec.results import CLUSTER_NAMES, ENSEMBLE, MODEL, SUMMARY, own_files
from mdec.results import read_result_model as read_model

# Solutions that are kept, and features that are listed.
_SOLUTIONS, _LISTED = 60, 40
_LONGEST_NAME = 60
_COLOUR = re.compile("#[0-9a-f]{6}")


class Result:
    """A result folder that is open.

    Parameters
    ----------
    folder : Folder
        Where it lies.
    name : str
        Its name there.
    """

    def __init__(self, folder: Folder, name: str) -> None:
        self.path = folder.path(name)
        self.summary = read_summary(self.path)
        if not self.summary:
            raise ValueError(f"{name[:80]!r} holds no result of mdec; cluster a table.")
        self.files = own_files(self.path)
        for each in self.files:
            folder.path(f"{name}/{each}")  # raises for a link
        self.max_bytes = folder.max_bytes
        self._solutions: OrderedDict[tuple[int, str], dict[str, Any]] = OrderedDict()
        self._lock = Lock()

    @cached_property
    def ensemble(self) -> Ensemble:
        """The base clusterings, with the names of samples, features and classes."""
        return Ensemble.load(self.path / ENSEMBLE, max_bytes=self.max_bytes)

    @cached_property
    def clustering(self) -> Clustering:
        """The clustering of the run; one without a model is found again."""
        if MODEL in self.files:
            model, _ = read_model(self.path / MODEL, self.max_bytes)
            return model.clustering_
        known = self.summary.get("parameters") or {}
        settings = Settings(
            int(self.summary["n_clusters"]),
            str(known.get("consensus", "hierarchical")),
            str(known.get("weighting", "entropy")),
            seed=int(known.get("seed") or 0),
        )
        return cluster_ensemble(self.ensemble, settings)

    @cached_property
    def rows(self) -> Any:
        """The samples that the report shows."""
        rng = member_stream(0, 0, "selection")
        return draw_from_clusters(np.asarray(self.clustering.labels), PAGE_SAMPLES, rng)

    @cached_property
    def values(self) -> Any:
        """The values of these samples, without features if there is no model."""
        tables = [each.rows for each in self.clustering.rows]
        n_samples = self.ensemble.n_samples
        if not tables or any(each.shape[0] != n_samples for each in tables):
            return np.empty((len(self.rows), 0))
        parts = [each[self.rows] for each in tables]
        dense = [each.toarray() if sparse.issparse(each) else each for each in parts]
        return np.hstack(dense)

    @cached_property
    def feature_names(self) -> list[str]:
        """Names of the features, their numbers from 1 where there are none."""
        names = list(self.ensemble.names.get("features", ()))
        for view in self.ensemble.views:
            names += [f"{view.name}: {each}" for each in view.features]
        n_features = self.values.shape[1]
        if len(names) != n_features:
            names = [f"feature {j + 1}" for j in range(n_features)]
        return names

    def describe(self) -> dict[str, Any]:
        """Return what the page needs to know of the result."""
        samples = self.ensemble.names.get("samples", ())
        return {
            "n_samples": self.ensemble.n_samples,
            "n_clusters": self.clustering.n_clusters,
            "consensus": self.clustering.settings.consensus,
            "choices": list(CONSENSUS),
            "most": min(30, self.ensemble.n_samples),
            "samples": [samples[i] for i in self.rows] if samples else [],
            "n_features": self.values.shape[1],
            "model": MODEL in self.files,
            "files": sorted({*self.files, *self.predictions()}),
            "clusters": self.names(),
        }

    def predictions(self) -> list[str]:
        """Return the tables of new samples in the folder."""
        found = self.path.glob("predicted-*.csv")
        return sorted(each.name for each in found if not each.is_symlink())

    def recluster(self, n_clusters: Any, consensus: Any) -> dict[str, Any]:
        """Return another clustering of the same base clusterings, for the report.

        Parameters
        ----------
        n_clusters : int
            Number of clusters.
        consensus : str
            Consensus function.

        Returns
        -------
        dict
            What the script of the report shows; clusters keep the numbers of those of
            the run that they share most samples with.
        """
        if not isinstance(n_clusters, int) or not 1 <= n_clusters <= 30:
            raise ValueError(f"K = {str(n_clusters)[:20]} is not shown; give 1 to 30.")
        if consensus not in CONSENSUS:
            raise ValueError(f"consensus is one of {', '.join(CONSENSUS)}.")
        key = n_clusters, str(consensus)
        with self._lock:
            if key not in self._solutions:
                self._solutions[key] = self._solve(*key)
                if len(self._solutions) > _SOLUTIONS:
                    self._solutions.popitem(last=False)
            return self._solutions[key]

    def _solve(self, n_clusters: int, consensus: str) -> dict[str, Any]:
        of_run, rows = self.clustering, self.rows
        found = of_run.recluster(n_clusters, consensus)
        labels = np.asarray(found.labels)
        parts = [np.asarray(of_run.labels)[rows], _without_gaps(labels[rows])]
        numbers = match_numbers([np.asarray(of_run.labels), labels], 0)[1]
        known = self.ensemble.names.get("classes")
        classes = None if known is None else np.array(known)
        shown = describe_solution(
            found.association,
            labels,
            np.asarray(found.confidence),
            numbers,
            classes,
            rows,
        )
        if self.values.shape[1] and parts[1].max() == labels.max():
            sums, names = moments(self.values, labels[rows]), self.feature_names
            listed = LISTED_SIGNATURES * (2 if found.n_clusters == 2 else 1)
            shown["signatures"] = signatures(sums, numbers, names, listed)
            most = LISTED_FEATURES
            shown["features"] = separating_features(sums, numbers, names, most)
        words = render_parts(
            shown,
            selection={"n_clusters": self.summary.get("suggested_n_clusters")},
            ambiguous_below=AMBIGUOUS,
            n_clusters=found.n_clusters,
            again=f"mdec consensus {self.path.name}/{ENSEMBLE}",
            settings={"consensus": consensus},
        )
        return pack_live(shown, words) | {"consensus": consensus}

    def find_features(self, words: str) -> list[str]:
        """Return the first features whose names contain some words."""
        wanted = words.lower()
        found = (each for each in self.feature_names if wanted in each.lower())
        return [name for name, _ in zip(found, range(_LISTED), strict=False)]

    def feature(self, name: str) -> dict[str, Any]:
        """Return the values of a feature over the samples of the report."""
        if name not in self.feature_names:
            raise ValueError(f"there is no feature {name[:80]!r}; choose a listed one.")
        column = self.values[:, self.feature_names.index(name)].astype("<f4")
        return {"name": name, "values": base64.b64encode(column.tobytes()).decode()}

    def compare(self, samples: Any) -> list[dict[str, Any]]:
        """Return the features that set samples of the report apart from the rest."""
        inside = np.zeros(len(self.rows), dtype=np.int64)
        chosen = np.array(samples, dtype=np.int64).ravel()
        if not chosen.size or chosen.min() < 0 or chosen.max() >= inside.size:
            raise ValueError("none of these samples is on the page; select some.")
        inside[chosen] = 1
        if not self.values.shape[1]:
            raise ValueError(
                "this result keeps no values of features to compare; cluster the table "
                "again with its model."
            )
        if inside.all():
            raise ValueError("all samples are selected; leave some to compare with.")
        sums = moments(self.values, 1 - inside)
        numbers = np.array([1, 0])
        found = signatures(sums, numbers, self.feature_names, LISTED_FEATURES)
        return [dict(each) for each in found]

    def names(self) -> dict[str, dict[str, str]]:
        """Return names and colours that people gave to clusters, by their numbers."""
        if CLUSTER_NAMES not in self.files:
            return {}
        content = json.loads((self.path / CLUSTER_NAMES).read_bytes()[:100_000])
        return _check_names(content)

    def rename(self, given: Any) -> dict[str, dict[str, str]]:
        """Keep names and colours of clusters in the folder, as a file of the result."""
        names = _check_names(given)
        with claim_folder(self.path), replace_together(self.path) as new:
            summary = read_summary(self.path)
            place = Path(summary["files"][SUMMARY]).with_name(CLUSTER_NAMES)
            summary["files"][CLUSTER_NAMES] = str(place)
            content = json.dumps(names, indent=1, ensure_ascii=False)
            write_atomically(new / CLUSTER_NAMES, content.encode())
            write_atomically(new / SUMMARY, json.dumps(summary, indent=1).encode())
        self.files = own_files(self.path)
        return names


def _without_gaps(labels: Any) -> Any:
    return np.unique(labels, return_inverse=True)[1]


def _check_names(given: Any) -> dict[str, dict[str, str]]:
    """Return names and colours of clusters, and nothing else that may be there.

    Examples
    --------
    >>> _check_names({"0": {"name": " a "}, "x": 1, "1": {"colour": "url(x)"}})
    {'0': {'name': 'a'}}
    """
    found = {}
    for key, value in given.items() if isinstance(given, dict) else ():
        if not (str(key).isdecimal() and len(str(key)) < 4 and isinstance(value, dict)):
            continue
        name = str(value.get("name") or "").strip()[:_LONGEST_NAME]
        colour = str(value.get("colour") or "")
        kept = {"name": name} if name else {}
        kept |= {"colour": colour} if _COLOUR.fullmatch(colour) else {}
        if kept:
            found[str(int(key))] = kept
    return found
