"""What the estimators share: the attributes of a fit, new rows, and files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mdec._support.arrays import Array
from mdec._support.memory import MAX_BYTES
from mdec._support.progress import Progress, progress_hooks
from mdec.clustering import Clustering, NumberOfClusters, Settings, cluster_tables
from mdec.confidence import firm_labels
from mdec.estimator.persistence import AFTER_MEMBERS, read_model, write_model
from mdec.generation import FLOATS
from mdec.prediction import PlacedRows, Placement
from mdec.preparation.units import describe_dominance
from mdec.rows import Rows, RowSource, as_rows
from mdec.rows.sources import check_indices, is_dask_array

# Names of the features of a table, where it has names.
FeatureNames = NDArray[Any] | None


class ClusteringEstimator(ClusterMixin, BaseEstimator):
    """An estimator whose fit makes a `Clustering`, of one table unless it says more."""

    # What its files say that they are, and the newest layout that is read.
    _file_kind: ClassVar[str]
    _file_format: ClassVar[int]

    # The others that a fit leaves are parts of the first, see `_set_attributes`.
    clustering_: Clustering
    _feature_names: list[FeatureNames]

    @property
    def _parameters(self) -> Any:
        """The `MDEC` that has the parameters."""
        return self

    @classmethod
    def _from_parameters(cls, parameters: Mapping[str, Any], view_weights: Any) -> Self:  # noqa: ARG003
        """Return an unfitted estimator with parameters of `MDEC`."""
        return cls(**parameters)

    def _split_tables(self, X: Any) -> Sequence[Any]:
        """Return the new rows of each table, in the order of the fit."""
        return [X]

    @property
    def _fitted(self) -> Clustering:
        """The clustering of the fit; an error before there is one."""
        check_is_fitted(self, "clustering_")
        return self.clustering_

    def _fit(self, tables: Mapping[str, Any], **options: Any) -> Self:
        """Cluster several tables by name, or one, and set all attributes.

        The options are those of `cluster_tables`.
        """
        given = self._parameters.get_params(deep=False)
        after = {name: given.pop(name) for name in AFTER_MEMBERS}
        own = {n: given[n] for n in ("base", "metric") if callable(given[n])}
        settings = Settings(**after, n_jobs=given["n_jobs"], **own)
        read = list(map(self._read_table, tables.values()))
        rows = {name: own for name, (own, _) in zip(tables, read, strict=True)}
        work = settings, given, self._member_progress()
        clustering = cluster_tables(rows, *work, **options)
        self._set_attributes(clustering, [features for _, features in read])
        return self

    def _member_progress(self) -> Progress:
        """Return a hook that passes each finished member on to callbacks, if any."""
        members = progress_hooks().members
        if not getattr(self, "_skl_callbacks", None):
            return members
        context = self._init_callback_context(max_subtasks=self.ensemble_size)
        context.call_on_fit_task_begin(estimator=self)

        def hook(done: int, total: int) -> None:
            members(done, total)
            task = context.subcontext(task_name="member")
            task.call_on_fit_task_begin(estimator=self)
            task.call_on_fit_task_end(estimator=self)
            if done == total:
                context.call_on_fit_task_end(estimator=self)

        return hook

    def _set_attributes(
        self, clustering: Clustering, feature_names: Sequence[FeatureNames]
    ) -> None:
        """Set all that a fit leaves behind together; nothing of an earlier one stays.

        What may fail comes first, a warning that is an error among it.
        """
        labels, n_clusters = clustering.firm_labels, clustering.n_clusters
        least = clustering.settings.min_confidence
        if least is not None:
            n_clusters = int(np.count_nonzero(np.unique(np.asarray(labels)) >= 0))
            if not n_clusters:
                warnings.warn(
                    f"no sample reaches min_confidence={least}; all labels are -1, "
                    "lower it.",
                    UserWarning,
                    stacklevel=5,
                )
        found = {
            "_feature_names": list(feature_names),
            "clustering_": clustering,
            "ensemble_": clustering.ensemble,
            "cluster_weights_": clustering.weights,
            "consensus_labels_": clustering.labels,
            "confidence_": clustering.confidence,
            "labels_": labels,
            "n_clusters_": n_clusters,
        }
        if clustering.selection is not None:
            found["k_selection_"] = clustering.selection
        if clustering.ensemble.views:
            found["views_"] = [view.name for view in clustering.ensemble.views]
        else:
            plan = clustering.rows[0].plan
            found |= {"n_features_in_": plan.n_features, "base_": plan.base}
            if feature_names[0] is not None:
                found["feature_names_in_"] = feature_names[0]
        for name in [each for each in vars(self) if each.endswith("_")]:
            delattr(self, name)
        for name, value in found.items():
            setattr(self, name, value)

    def _read_table(self, X: Any) -> tuple[Rows, FeatureNames]:
        """Return the rows of a table in blocks, and the names of its features."""
        if isinstance(X, RowSource) or is_dask_array(X):
            return as_rows(X), None
        rows, names = self._validate(X, ensure_min_samples=3)
        plain = self._parameters.metric is None and not self._parameters.preparation
        measured = plain and isinstance(rows, np.ndarray)
        if measured and (sentence := describe_dominance(rows, names)):
            warnings.warn(sentence, UserWarning, stacklevel=6)
        return as_rows(rows), names

    def _validate(
        self, X: Any, known: Mapping[str, Any] | None = None, **options: Any
    ) -> tuple[Any, Any]:
        """Return the numbers of a table, and the names of its features.

        What is known of the features of the fit is compared with them.
        """
        # Another estimator, because a fit that fails must leave this one as it is.
        reader = type(self._parameters)()
        vars(reader).update(known or {})
        options |= {"accept_sparse": "csr", "dtype": FLOATS, "reset": known is None}
        rows = validate_data(reader, check_indices(X), **options)
        return rows, getattr(reader, "feature_names_in_", None)

    def _read_new_rows(self, X: Any) -> tuple[Placement, list[Any]]:
        """Return what places new rows, and these as training rows are stored."""
        placement = self._fitted.placement
        assert placement is not None  # of a fit
        tables = []
        for table, known, names in zip(
            self._split_tables(X), placement.tables, self._feature_names, strict=True
        ):
            features: dict[str, Any] = {"n_features_in_": known.plan.n_features}
            if names is not None:
                features["feature_names_in_"] = names
            tables.append(known.as_stored(self._validate(table, features)[0]))
        return placement, tables

    def _base_clusters(self, X: Any) -> tuple[Placement, NDArray[np.int32]]:
        """Return what places new rows, and their base clusters.

        They are found where the clustering was made.
        """
        placement, tables = self._read_new_rows(X)
        n_jobs, device = self._parameters.n_jobs, self.clustering_.settings.device
        return placement, placement.base_clusters(tables, n_jobs=n_jobs, device=device)

    def _place(self, X: Any) -> tuple[NDArray[np.int32], Array]:
        """Return clusters of new rows (-1: too uncertain), and confidence."""
        placement, base = self._base_clusters(X)
        clusters, sure = placement.place(base)
        least = self.clustering_.settings.min_confidence
        return firm_labels(clusters, sure, least), sure

    @property
    def membership_(self) -> Array:
        """How far each sample belongs to each cluster; rows add up to one.

        The mean co-association of a sample with the samples of each cluster, itself
        left out, over the sum of these, of shape (n_samples, n_clusters); computed when
        it is asked for. The columns are the clusters of `consensus_labels_`.
        """
        return self._fitted.membership

    def recluster(
        self, n_clusters: NumberOfClusters | None = None, consensus: str | None = None
    ) -> Any:
        """Return new labels from the fitted ensemble; nothing is generated again.

        Parameters
        ----------
        n_clusters : int, "auto" or pair of int, default=None
            Number of clusters; None for that of the fit.
        consensus : str, default=None
            Consensus function; None for that of the fit.

        Returns
        -------
        ndarray of shape (n_samples,)
            The labels that `fit` gives with these settings and the same seed. More of
            that clustering is in ``clustering_.recluster(...)``.
        """
        return self._fitted.recluster(n_clusters, consensus).firm_labels

    def with_clustering(self, clustering: Clustering) -> Self:
        """Return a fitted estimator with another clustering of the same ensemble.

        Parameters
        ----------
        clustering : Clustering
            Such as ``model.clustering_.recluster(4)``.

        Returns
        -------
        estimator
            With the parameters of this one, but for those that are settings of the
            clustering.
        """
        check_is_fitted(self, "clustering_")
        own = {name: getattr(clustering.settings, name) for name in AFTER_MEMBERS}
        parameters = self._parameters.get_params(deep=False) | own
        weights = getattr(self, "view_weights", None)
        model = self._from_parameters(parameters, weights)
        model._set_attributes(clustering, self._feature_names)
        return model

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the clusters of new rows.

        In each base clustering a new row joins the base cluster with the largest
        summed similarity among its nearest training rows; it then joins the cluster
        with the largest mean weighted co-association, which the spectral and the
        bipartite consensus divide by the roots of the degrees. A base clustering in
        which no training row is similar to it has no vote.

        Parameters
        ----------
        X : array-like or sparse of shape (n_new, n_features), or mapping of these
            New rows, prepared like those of `fit`; of several tables, by their names.

        Returns
        -------
        ndarray of shape (n_new,)
            Clusters with the numbers of `labels_`. Rows of `fit` nearly always get
            their own cluster, but not by rule; for those use `labels_`. -1 for rows
            whose confidence is below `min_confidence`, if it is set.
        """
        return self._place(X)[0]

    def predict_proba(self, X: Any) -> Array:
        """Return how far new rows belong to each cluster.

        Parameters
        ----------
        X : array-like or sparse of shape (n_new, n_features), or mapping of these
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
            As `membership_`; rows add up to one. These are shares of the ensemble's
            agreement, not chances that a cluster is right.
        """
        placement, base = self._base_clusters(X)
        return placement.memberships(base)

    def predict_confidence(self, X: Any) -> Array:
        """Return the confidence of new rows in their clusters.

        Parameters
        ----------
        X : array-like or sparse of shape (n_new, n_features), or mapping of these
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_new,)
            In [0, 1], as `confidence_`; 0.5 for a row that is similar to no training
            row. A row far from all others may be confident: ask `unlike_training` as
            well.
        """
        return self._place(X)[1]

    def unlike_training(self, X: Any) -> NDArray[np.bool_]:
        """Tell which new rows are unlike anything in training.

        Such a row is farther from its nearest training rows, measured by how far these
        are from theirs, than 99 of 100 training rows are (below a hundred rows, than
        any of them); of several tables, in at least one.

        Parameters
        ----------
        X : array-like or sparse of shape (n_new, n_features), or mapping of these
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_new,)
            True for rows whose cluster means little. See docs/confidence.md for how
            often the rule is right.
        """
        placement, tables = self._read_new_rows(X)
        return placement.are_unlike(tables)

    def place(self, X: Any) -> PlacedRows:
        """Return clusters, confidence and the flag of new rows, in one go.

        Parameters
        ----------
        X : array-like or sparse of shape (n_new, n_features), or mapping of these
            As in `predict`.

        Returns
        -------
        PlacedRows
            ``clusters``, ``confidence`` and ``unlike``: what `predict`,
            `predict_confidence` and `unlike_training` return.
        """
        return PlacedRows(*self._place(X), self.unlike_training(X))

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
        """Read a model that `save` or the command line wrote; nothing is executed.

        Parameters
        ----------
        path : path-like
            The file.
        max_bytes : int, default=4 GiB
            A file that claims to unpack to more is refused before it is.

        Returns
        -------
        estimator
            With the parameters, attributes and predictions of the saved one, save for
            `n_jobs`, `checkpoint` and `verbose`, which concern the machine it was
            fitted on.
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
