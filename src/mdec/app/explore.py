"""A result that is explored: other clusters, names, features, new samples."""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mdec import results
from mdec._support.files import claim_folder, replace_together, write_atomically
from mdec.app.folder import Folder, clean, read_summary
from mdec.cli.finished import place_samples
from mdec.cli.options import ReadOptions
from mdec.clustering import Clustering, Settings, cluster_ensemble
from mdec.consensus import CONSENSUS
from mdec.ensemble import Ensemble
from mdec.report import compute
from mdec.report.layout import COLOURS
from mdec.report.page import pack_clusters, render_parts
from mdec.report.signatures import (
    LISTED_FEATURES,
    describe_features,
    moments,
    signatures,
)
from mdec.report.solutions import cut_halves, describe_solution, match_numbers
from mdec.results import CLUSTER_NAMES, ENSEMBLE, MODEL, SUMMARY

MOST_CLUSTERS = 30
_LONGEST_NAME = 60
_COLOUR = re.compile("#[0-9a-f]{6}")


class Result:
    """A result folder that is open; the samples are those that its report shows."""

    def __init__(self, folder: Folder, name: str) -> None:
        self.folder, self.path = folder, folder.path(name)
        self.max_bytes = folder.max_bytes
        self.summary, self.files = read_summary(self.path), results.own_files(self.path)
        if not self.summary:
            raise ValueError(f"{name[:80]!r} holds no result of mdec; cluster a table.")
        for each in self.listed:
            folder.path(f"{name}/{each}")  # raises for a link
        self._solve_once = cache(self._solve)
        self.written = self._written()

    def _written(self) -> int:
        return (self.path / SUMMARY).stat().st_mtime_ns

    @property
    def is_current(self) -> bool:
        """Whether the folder holds what was opened, but for names given here."""
        with self.folder.writing:
            return (self.path / SUMMARY).is_file() and self._written() == self.written

    @property
    def listed(self) -> list[str]:
        """The files to take away: those of the result, and tables of new samples."""
        placed = [each.name for each in self.path.glob("predicted-*.csv")]
        return sorted([*self.files, *placed])

    @cached_property
    def ensemble(self) -> Ensemble:
        """The base clusterings, with the names of samples, features and classes."""
        return Ensemble.load(self.path / ENSEMBLE, max_bytes=self.max_bytes)

    @cached_property
    def clustering(self) -> Clustering:
        """The clustering of the run; one without a model is found again."""
        if MODEL in self.files:
            model, _ = results.read_result_model(self.path / MODEL, self.max_bytes)
            return model.clustering_
        known = self.summary.get("parameters") or {}
        names = "consensus", "weighting", "seed"
        given = {name: known[name] for name in names if known.get(name) is not None}
        settings = Settings(int(self.summary["n_clusters"]), **given)
        return cluster_ensemble(self.ensemble, settings)

    @cached_property
    def page(self) -> Any:
        """The samples of the report, as it draws them, and their ensemble."""
        return compute.draw_page(self.clustering)

    @property
    def rows(self) -> Any:
        """The samples of the report."""
        return self.page[0]

    @cached_property
    def drawn(self) -> Clustering:
        """The clustering of the samples of the report alone, which is soon another."""
        ensemble, weights = self.page[1]
        labels = np.asarray(self.clustering.labels)[self.rows]
        parts = {"ensemble": ensemble, "weights": weights, "labels": labels}
        return replace(self.clustering, **parts, placement=None)

    @property
    def most(self) -> int:
        """The largest number of clusters that is on offer."""
        return min(MOST_CLUSTERS, len(self.rows))

    @cached_property
    def halves(self) -> Any:
        """The clusters of the halves of the ensemble for every number from 1."""
        ensemble, weights = self.page[1]
        return cut_halves(ensemble, weights, range(1, self.most + 1))

    @cached_property
    def values(self) -> Any:
        """Their values, without features where the model does not have all rows."""
        tables = [each.rows for each in self.clustering.rows]
        if {each.shape[0] for each in tables} != {self.ensemble.n_samples}:
            return np.empty((len(self.rows), 0))
        parts = [each[self.rows] for each in tables]
        return np.hstack([p.toarray() if sparse.issparse(p) else p for p in parts])

    @cached_property
    def features(self) -> list[str]:
        """Names of the features, their numbers from 1 where there are none."""
        names, width = [*self.ensemble.names.get("features", ())], self.values.shape[1]
        for view in self.ensemble.views:
            names += [f"{view.name}: {each}" for each in view.features]
        return names if len(names) == width else [str(j + 1) for j in range(width)]

    def describe(self) -> dict[str, Any]:
        """Return what the page needs to know of the result."""
        samples = self.ensemble.names.get("samples", ())
        return {
            "n_clusters": self.clustering.n_clusters,
            "consensus": self.clustering.settings.consensus,
            "choices": list(CONSENSUS),
            "palette": COLOURS,
            "most": self.most,
            "drawn": len(self.rows) < self.ensemble.n_samples,
            "samples": [samples[i] for i in self.rows] if samples else [],
            "features": self.features,
            "model": MODEL in self.files,
            "files": self.listed,
            "clusters": self.names,
        }

    def recluster(self, k: int, consensus: str, quick: bool = False) -> dict[str, Any]:
        """Return another clustering of the same base clusterings, for the report.

        Clusters keep the numbers of those of the run with which they share most. A
        quick one is of the samples of the report alone.
        """
        if k not in range(1, self.most + 1) or consensus not in CONSENSUS:
            known = ", ".join(CONSENSUS)
            raise ValueError(
                f"K is 1 to {self.most}, and the consensus one of {known}."
            )
        return self._solve_once(k, consensus, bool(quick))

    def prepare(self, **asked: Any) -> None:
        """Find what `recluster` may be asked for."""
        self.recluster(**asked)

    def _solve(self, n_clusters: int, consensus: str, quick: bool) -> dict[str, Any]:
        start = self.drawn if quick else self.clustering
        found = start.recluster(n_clusters, consensus)
        labels = np.asarray(found.labels)
        numbers = match_numbers([np.asarray(start.labels), labels], 0)[1]
        known, rows = self.ensemble.names.get("classes"), self.rows
        classes = None if known is None else np.array(known)
        if quick:
            classes, rows = None if classes is None else classes[rows], slice(None)
        of = found.association, labels, np.asarray(found.confidence), numbers, classes
        shown = describe_solution(*of, self.halves[n_clusters - 1], rows)
        sums = moments(self.values, shown["labels"], len(numbers))
        order = np.arange(len(numbers))
        shown |= describe_features(sums, numbers, order, self.features)
        words = render_parts(
            shown,
            selection={"n_clusters": self.summary.get("suggested_n_clusters")},
            n_clusters=found.n_clusters,
            command=f"mdec consensus {self.path.name}/{ENSEMBLE}",
            settings={"consensus": consensus},
        )
        own = {"halves": shown["halves"], "parts": words}
        return pack_clusters(shown) | own | {"consensus": consensus, "quick": quick}

    def feature(self, name: Any) -> dict[str, Any]:
        """Return the values of a feature."""
        if name not in self.features:
            raise ValueError(f"the result has no feature {str(name)[:80]!r}.")
        column = self.values[:, self.features.index(name)].astype(np.float32)
        return {"name": name, "values": column}

    def compare(self, samples: Any) -> list[Any]:
        """Return the features that set some samples apart from the rest."""
        outside = np.ones(len(self.rows), dtype=np.int64)
        outside[np.array(samples, dtype=np.int64)] = 0
        if len(set(outside.tolist())) == 1 or not self.features:
            raise ValueError("there is nothing to compare; select some of the samples.")
        sums = moments(self.values, outside)
        return signatures(sums, np.arange(2), self.features, LISTED_FEATURES)

    @property
    def names(self) -> dict[str, dict[str, str]]:
        """Names and colours that people gave to clusters, by their numbers."""
        if CLUSTER_NAMES not in self.files:
            return {}
        return check_names(json.loads((self.path / CLUSTER_NAMES).read_bytes()))

    def rename(self, clusters: Any) -> dict[str, dict[str, str]]:
        """Keep names and colours of clusters in the folder, as a file of the result."""
        names = check_names(clusters)
        with self.folder.writing:
            with claim_folder(self.path), replace_together(self.path) as new:
                summary = read_summary(self.path)
                place = Path(summary["files"][SUMMARY]).with_name(CLUSTER_NAMES)
                summary["files"][CLUSTER_NAMES] = str(place)
                content = {CLUSTER_NAMES: names, SUMMARY: summary}
                for name, each in content.items():
                    write_atomically(new / name, json.dumps(each, indent=1).encode())
            self.files, self.written = results.own_files(self.path), self._written()
        return names

    def predict(self, file: Any) -> dict[str, Any]:
        """Place the samples of another table, as `mdec predict` does."""
        path = self.folder.path(file)
        out = self.path / f"predicted-{clean(path.stem)}.csv"
        reading = ReadOptions(max_gb=self.max_bytes / 2**30)
        return place_samples(self.path / MODEL, path, reading, out) | {"out": out.name}

    def pack(self) -> Path:
        """Return a temporary file with all files of the result."""
        with (
            tempfile.NamedTemporaryFile(suffix=".zip", delete=False) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            for name in self.listed:
                archive.write(self.path / name, f"{self.path.name}/{name}")
        return Path(file.name)


def check_names(given: Any) -> dict[str, dict[str, str]]:
    """Return names and colours of clusters, and nothing else that may be there."""
    found: dict[str, dict[str, str]] = {}
    for key, value in dict(given).items():
        if re.fullmatch("[0-9]{1,3}", key) and isinstance(value, dict):
            if name := str(value.get("name") or "").strip():
                found.setdefault(key, {})["name"] = name[:_LONGEST_NAME]
            if _COLOUR.fullmatch(colour := str(value.get("colour") or "")):
                found.setdefault(key, {})["colour"] = colour
    return found
