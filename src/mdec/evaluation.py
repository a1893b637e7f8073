"""Scores against known classes; every name says which variant it is."""

from __future__ import annotations

from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    normalized_mutual_info_score,
)
from sklearn.metrics.cluster import contingency_matrix


def nmi_max(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    r"""Return the mutual information over the larger entropy, as in the paper's tables.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Two partitions.

    Returns
    -------
    float
        :math:`I(U, V) / \max(H(U), H(V))`, in [0, 1].

    Examples
    --------
    >>> round(nmi_max([0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 2, 2, 2]), 6)
    0.480376
    """
    return _nmi(labels_true, labels_pred, "max")


def ari(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Return the adjusted Rand index of Hubert and Arabie.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Two partitions.

    Returns
    -------
    float
        1 for equal partitions, about 0 for independent ones.

    Examples
    --------
    >>> ari([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    return float(adjusted_rand_score(labels_true, labels_pred))


def nmi_geometric(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    r"""Return the mutual information over the geometric mean of the entropies.

    Of two partitions as for `nmi_max`: :math:`I(U, V) / \sqrt{H(U) H(V)}`, in [0, 1].

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Known classes.
    labels_pred : array-like of shape (n_samples,)
        Clusters.

    Returns
    -------
    float
        In [0, 1]; 1 for equal partitions.

    Examples
    --------
    >>> round(nmi_geometric([0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 2, 2, 2]), 6)
    0.600235
    """
    return _nmi(labels_true, labels_pred, "geometric")


def nmi_arithmetic(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Return the mutual information over the arithmetic mean of the entropies.

    Of two partitions as for `nmi_max`: :math:`2 I(U, V) / (H(U) + H(V))`, in [0, 1].

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Known classes.
    labels_pred : array-like of shape (n_samples,)
        Clusters.

    Returns
    -------
    float
        In [0, 1]; 1 for equal partitions.

    Examples
    --------
    >>> nmi_arithmetic([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    return _nmi(labels_true, labels_pred, "arithmetic")


def ami(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Return the mutual information adjusted for chance, arithmetic mean below.

    Of two partitions as for `nmi_max`: 1 if they are equal, about 0 if independent.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Known classes.
    labels_pred : array-like of shape (n_samples,)
        Clusters.

    Returns
    -------
    float
        At most 1, for equal partitions; about 0 for unrelated ones.

    Examples
    --------
    >>> ami([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    return float(adjusted_mutual_info_score(labels_true, labels_pred))


def purity(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    r"""Return the share of samples that belong to their cluster's largest class.

    Of classes and clusters, in (0, 1]: :math:`\frac{1}{N} \sum_k \max_j |C_k \cap
    T_j|`.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Known classes.
    labels_pred : array-like of shape (n_samples,)
        Clusters.

    Returns
    -------
    float
        In (0, 1]; 1 if no cluster mixes classes.

    Examples
    --------
    >>> purity([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    overlaps = contingency_matrix(labels_true, labels_pred)
    return float(overlaps.max(axis=0).sum() / overlaps.sum())


def clustering_accuracy(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Return the share of samples in the class that their cluster stands for.

    Clusters stand for classes one to one, in the way that makes the share largest
    (Hungarian method), in (0, 1]; clusters beyond the number of classes stand for none.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Known classes.
    labels_pred : array-like of shape (n_samples,)
        Clusters.

    Returns
    -------
    float
        In [0, 1]; 1 for equal partitions.

    Examples
    --------
    >>> clustering_accuracy([0, 0, 0, 1], [0, 1, 2, 2])
    0.5
    """
    overlaps = contingency_matrix(labels_true, labels_pred)
    rows, columns = linear_sum_assignment(overlaps, maximize=True)
    return float(overlaps[rows, columns].sum() / overlaps.sum())


def _nmi(labels_true: ArrayLike, labels_pred: ArrayLike, mean: str) -> float:
    score = normalized_mutual_info_score(labels_true, labels_pred, average_method=mean)
    return float(score)


_SCORES = (nmi_max, nmi_geometric, nmi_arithmetic, ami, ari, purity)
METRICS = {
    **{score.__name__: score for score in _SCORES},
    "accuracy": clustering_accuracy,
}
