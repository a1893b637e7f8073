"""Scores against known classes; every name says which variant it is.

`METRICS` maps the names of all scores to functions of two partitions. Besides those
written here they are nmi_geometric and nmi_arithmetic, which divide the mutual
information by the geometric and the arithmetic mean of the entropies, ami, which
adjusts it for chance and divides by the arithmetic mean, and ari, the adjusted Rand
index of Hubert and Arabie, all from scikit-learn.
"""

from __future__ import annotations

from functools import partial

from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score
from sklearn.metrics import normalized_mutual_info_score as nmi_score
from sklearn.metrics.cluster import contingency_matrix

ari = adjusted_rand_score


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
    return float(nmi_score(labels_true, labels_pred, average_method="max"))


def purity(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    r"""Return the share of samples that belong to their cluster's largest class.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Known classes, and clusters.

    Returns
    -------
    float
        :math:`\frac{1}{N} \sum_k \max_j |C_k \cap T_j|`, in (0, 1]; 1 if no cluster
        mixes classes.

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
    (Hungarian method); clusters beyond the number of classes stand for none.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Known classes, and clusters.

    Returns
    -------
    float
        In (0, 1]; 1 for equal partitions.

    Examples
    --------
    >>> clustering_accuracy([0, 0, 0, 1], [0, 1, 2, 2])
    0.5
    """
    overlaps = contingency_matrix(labels_true, labels_pred)
    rows, columns = linear_sum_assignment(overlaps, maximize=True)
    return float(overlaps[rows, columns].sum() / overlaps.sum())


METRICS = {
    "nmi_max": nmi_max,
    "nmi_geometric": partial(nmi_score, average_method="geometric"),
    "nmi_arithmetic": partial(nmi_score, average_method="arithmetic"),
    "ami": adjusted_mutual_info_score,
    "ari": ari,
    "purity": purity,
    "accuracy": clustering_accuracy,
}
