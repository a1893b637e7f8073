"""Scores against known classes; every name says which variant it is."""

from __future__ import annotations

from numpy.typing import ArrayLike
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score


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
    score = normalized_mutual_info_score(labels_true, labels_pred, average_method="max")
    return float(score)


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
