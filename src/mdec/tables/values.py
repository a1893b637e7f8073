"""What is done to the numbers of a table: missing ones filled in, all transformed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mdec.tables.door import Refused

TRANSFORMS = ("none", "log", "standardise")
IMPUTATIONS = ("median", "knn")


def check_finite(
    values: NDArray[np.floating],
    samples: list[str],
    features: list[str],
    name: str,
    impute: str | None,
) -> None:
    """Raise for infinite values, and for missing ones that nobody fills in."""
    finite = np.isfinite(values)
    if finite.all():
        return
    missing = np.isnan(values)
    if not (finite | missing).all():
        row, column = np.argwhere(~(finite | missing))[0]
        raise Refused(
            f"{name!r}, sample {samples[row][:60]!r}, column "
            f"{features[column][:60]!r}: the value is infinite; mend it or leave the "
            "sample out."
        )
    if impute is None:
        row, column = np.argwhere(missing)[0]
        raise Refused(
            f"{name!r} has {missing.sum()} missing values, in "
            f"{missing.any(axis=1).sum()} of {len(samples)} samples and "
            f"{missing.any(axis=0).sum()} of {len(features)} features, the first in "
            f"sample {samples[row][:60]!r}, column {features[column][:60]!r}; fill "
            "them in with --impute median or --impute knn, or leave columns out with "
            "--drop."
        )


def imputed(
    values: NDArray[np.floating], how: str, features: Sequence[str], name: str
) -> NDArray[np.floating]:
    """Return the values with missing ones filled in.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_features)
        Finite numbers and NaN.
    how : {"median", "knn"}
        The median of the feature, or the mean of the five nearest samples that have
        the feature, by the features that both have.
    features : sequence of str
        Names of the features.
    name : str
        Name of the file.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Finite numbers.

    Examples
    --------
    >>> imputed(np.array([[1.0], [np.nan], [4.0], [9.0]]), "median", ["a"], "a.csv")
    array([[1.],
           [4.],
           [4.],
           [9.]])
    """
    from sklearn.impute import KNNImputer, SimpleImputer

    empty = np.flatnonzero(np.isnan(values).all(axis=0))
    if empty.size:
        raise Refused(
            f"{name!r} has no value at all in column {features[empty[0]][:60]!r}; "
            f"leave it out with --drop {features[empty[0]]!r}."
        )
    imputer = KNNImputer() if how == "knn" else SimpleImputer(strategy="median")
    filled: NDArray[np.floating] = imputer.fit_transform(values)
    return filled


def transformed(values: NDArray[np.floating], how: str) -> NDArray[np.floating]:
    """Return the values after one of the usual transformations.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_features)
        Finite numbers.
    how : {"none", "log", "standardise"}
        "log" is log2(x + 1); "standardise" gives each feature mean 0 and standard
        deviation 1, and leaves constant features at 0.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        A new array, or `values` itself for "none".

    Examples
    --------
    >>> transformed(np.array([[0.0, 1.0], [3.0, 1.0]]), "log")
    array([[0., 1.],
           [2., 1.]])
    """
    if how == "none":
        return values
    if how == "log":
        if values.min() < 0.0:
            raise ValueError(
                "the log transform needs numbers from 0 up and the table has negative "
                "ones; use none or standardise."
            )
        return np.log2(values + 1.0)
    if how != "standardise":
        raise ValueError(f"transform={how!r} is not one of {', '.join(TRANSFORMS)}.")
    means, spreads = feature_scales(values)
    return (values - means) / spreads


def feature_scales(
    values: NDArray[np.floating],
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return what standardising subtracts from each feature, and what it divides by.

    Examples
    --------
    >>> feature_scales(np.array([[0.0, 1.0], [4.0, 1.0]]))
    (array([2., 1.]), array([2., 1.]))
    """
    spreads = values.std(axis=0)
    return values.mean(axis=0), np.where(spreads > 0.0, spreads, 1.0)
