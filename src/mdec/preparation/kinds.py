"""What values are: counts, intensities, their logarithms, or no expression at all."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy import sparse

from mdec._support.arrays import Array
from mdec.preparation.recipes import (
    center_samples,
    feature_spreads,
    fill_zeros,
    sample_totals,
    scale_to_spread,
)

# What values can be; "other" is left alone.
KINDS = (
    *("counts", "log-counts", "abundances", "log-abundances", "intensities", "logged"),
    *("ratios", "log-ratios", "other"),
)

# Fewer features are an ordinary table, or an embedding.
MIN_FEATURES = 100

# Samples that are looked at to tell what the values are, and numbers of theirs.
_SAMPLES, _NUMBERS = 1000, 2**22

# In one sample of raw expression a few genes outshine the rest: its skewness is above
# 4 on every raw set of the paper, and at most 2.2 on its images.
_RAW_SKEWNESS = 3.0

# Excess kurtosis of one sample: above 1.4 for the log-ratios of the paper, near 0 for
# embeddings.
_RATIO_KURTOSIS = 1.0

# Ratios to a reference, and abundances per million, have their median near 1.
_RATIOS = (0.25, 4.0)

# Correlation of a sample with the mean of all, where genes keep their levels: in bulk,
# and in single cells, of whose genes only some are seen.
_AGREEMENT, _CELL_AGREEMENT = 0.7, 0.3

# The largest logarithm of expression lies here, to base 2 or e; to base 10 of
# abundances from 300 to 10 million.
_LOGGED = (8.0, 25.0)
_LOGGED_10 = (2.5, 7.0)

# Reads fall on no copy of many genes in a cell, and on none of some in a tissue; arrays
# measure a background everywhere.
_SILENT = 0.1
_GENES = 1000


def kind_of_values(X: Array | sparse.csr_array) -> tuple[str, str]:
    """Tell what values are, and how one sees it.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Finite values.

    Returns
    -------
    kind : str
        One of `KINDS`; "other" where nothing speaks clearly for expression data.
    reason : str
        A sentence.

    Examples
    --------
    >>> kind, reason = kind_of_values(np.ones((5, 4)))
    >>> kind
    'other'
    >>> print(reason)
    4 features are too few for expression data.
    """
    if X.shape[1] < MIN_FEATURES:
        return "other", f"{X.shape[1]} features are too few for expression data."
    low, high = float(X.min()), float(X.max())
    if max(-low, high) <= 1.0:
        return "other", (
            "All values lie between -1 and 1, as bits, proportions, unit vectors and "
            "scaled features do."
        )
    step = math.ceil(X.shape[0] / max(1, min(_SAMPLES, _NUMBERS // X.shape[1])))
    rows = fill_zeros(X[::step]).astype(np.float64)
    if low < 0.0:
        return _kind_of_signed(fill_zeros(X), rows)
    return _kind_of_positive(rows)


def _kind_of_positive(rows: Array) -> tuple[str, str]:
    low, high = float(rows.min()), float(rows.max())
    whole = bool((rows == np.rint(rows)).all())
    at_top = np.count_nonzero(rows == high)
    if whole and high <= 255.0 and at_top > 0.005 * np.count_nonzero(rows):
        return "other", f"Whole numbers pile up at the largest, {high:g}, as in images."
    if np.allclose(sample_totals(rows), 100.0, rtol=1e-3):
        return "other", "Every sample sums to 100: these are percentages."
    if not whole and high <= _LOGGED[1] and _logs_of_counts(rows):
        return "log-counts", (
            "Undoing the logarithm gives each sample whole multiples of one number: "
            "these are counts, scaled and logged."
        )
    skewness = _typical_moment(rows, 3)
    if skewness >= _RAW_SKEWNESS and whole and low == 0.0:
        return "counts", (
            "Whole numbers from zero, a few of them far above the rest (skewness "
            f"{skewness:.1f} in a typical sample): these are counts."
        )
    silent = float(np.mean(rows == 0.0))
    if not whole and silent >= _SILENT:
        found = _kind_of_silent(rows, high, skewness, silent)
        if found is not None:
            return found
    typical = float(np.median(np.median(rows, axis=1)))
    if skewness >= _RAW_SKEWNESS and _RATIOS[0] <= typical <= _RATIOS[1]:
        return "ratios", (
            "No value is negative, a few are far above the rest (skewness "
            f"{skewness:.1f} in a typical sample) and half are below {typical:.2g}: "
            "these are ratios."
        )
    if skewness >= _RAW_SKEWNESS:
        return "intensities", (
            "No value is negative and a few are far above the rest (skewness "
            f"{skewness:.1f} in a typical sample): these are raw intensities."
        )
    # Zeros are what is left of silent genes, or of neurons; genes have their levels.
    neurons = silent > 0.01 and _typical_agreement(rows) < _AGREEMENT
    if not whole and not neurons and _LOGGED[0] <= high <= _LOGGED[1]:
        return "logged", (
            f"Values reach from {low:.3g} to {high:.3g} without a long tail, as "
            "logarithms of intensities do."
        )
    return "other", (
        f"Values from {low:.3g} to {high:.3g} are neither raw nor logged expression: "
        f"skewness {skewness:.1f} in a typical sample."
    )


def _kind_of_silent(
    rows: Array, high: float, skewness: float, silent: float
) -> tuple[str, str] | None:
    """Tell abundances of reads and their logarithms, in which many genes are silent."""
    if high > _LOGGED[1] and skewness >= _RAW_SKEWNESS:
        return "abundances", (
            f"{silent:.0%} of the values are zero, none is negative and a few are far "
            f"above the rest (skewness {skewness:.1f} in a typical sample): these are "
            "abundances of reads, such as TPM, FPKM or RPKM."
        )
    possible = rows.shape[1] >= _GENES and _LOGGED_10[0] <= high <= _LOGGED[1]
    if not possible or _typical_agreement(rows) < _CELL_AGREEMENT:
        return None
    base = "10" if high <= _LOGGED_10[1] else "2 or e"
    return "log-abundances", (
        f"{silent:.0%} of the values are zero and the largest is {high:.3g}, as "
        f"logarithms of abundances of reads are, to base {base}."
    )


def _kind_of_signed(X: Array, rows: Array) -> tuple[str, str]:
    low, high = float(rows.min()), float(rows.max())
    spreads = feature_spreads(X)
    varying = np.log(spreads[spreads > 0.0])
    # Were all true spreads alike, their logarithms would still differ by about this.
    if varying.size < 2 or varying.std() <= 0.05 + 1.0 / math.sqrt(X.shape[0]):
        return "other", "All features vary alike, as standardised ones do."
    relative = rows / max(-low, high)
    lengths = np.linalg.norm(relative, axis=1)
    if lengths.std() <= 1e-3 * lengths.mean():
        return "other", "All samples have the same length, as embeddings have."
    places = np.argsort(np.argsort(-spreads, kind="stable"), kind="stable")
    if np.corrcoef(places, np.arange(places.size))[0, 1] > 0.9:
        return "other", "Features come in the order of their variance: a projection."
    skewness, kurtosis = _typical_moment(rows, 3), _typical_moment(rows, 4) - 3.0
    if skewness >= _RAW_SKEWNESS and high > _LOGGED[1]:
        return "intensities", (
            f"A few values are far above the rest (skewness {skewness:.1f} in a "
            "typical sample): these are raw intensities less a background."
        )
    offset = float(np.median(np.median(relative, axis=1))) / relative.std()
    if offset >= 0.5 and low >= -_LOGGED[0] and _LOGGED[0] <= high <= _LOGGED[1]:
        return "logged", (
            f"Values reach from {low:.3g} to {high:.3g} and most are positive, as "
            "logarithms of scaled counts are."
        )
    wide = X.shape[1] > X.shape[0] and max(-low, high) <= _LOGGED[1]
    if wide and abs(offset) < 0.5 and kurtosis >= _RATIO_KURTOSIS:
        return "log-ratios", (
            f"Values from {low:.3g} to {high:.3g} lie around zero with heavy tails "
            f"(excess kurtosis {kurtosis:.1f} in a typical sample): these are "
            "log-ratios."
        )
    return "other", (
        f"Values from {low:.3g} to {high:.3g} on both sides of zero are no log-ratios: "
        f"excess kurtosis {kurtosis:.1f} and skewness {skewness:.1f} in a typical "
        "sample."
    )


def _typical_moment(rows: Array, degree: int) -> float:
    """Return the median over the samples of a standardised moment."""
    moments = [
        np.mean(scale_to_spread(center_samples(rows[i : i + 100])) ** degree, axis=1)
        for i in range(0, len(rows), 100)
    ]
    return float(np.median(np.concatenate(moments)))


def _typical_agreement(rows: Array) -> float:
    """Return the median correlation of samples with the mean of all."""
    mean = scale_to_spread(center_samples(rows.mean(axis=0, keepdims=True)))
    found = [
        np.mean(scale_to_spread(center_samples(rows[i : i + 100])) * mean, axis=1)
        for i in range(0, len(rows), 100)
    ]
    return float(np.median(np.concatenate(found)))


def _logs_of_counts(rows: Array) -> bool:
    """Tell whether samples are log(1 + c n) of counts n, with a c of their own."""
    shares = []
    for row in rows:
        values = np.expm1(row[row > 0.0])
        multiples = values / values.min(initial=math.inf)
        # Larger ones are not whole any more after rounding to float32.
        multiples = multiples[(multiples > 1.5) & (multiples < 1000.0)]
        if multiples.size:
            shares.append(np.mean(np.abs(multiples - np.rint(multiples)) < 0.02))
    return len(shares) > len(rows) / 2 and float(np.median(shares)) > 0.9


def kind_of_layer(
    X: Array | sparse.csr_array, layer: str | None, uns: Iterable[str]
) -> str | None:
    """Tell what the values of an AnnData layer are by its name, where that is clear.

    Parameters
    ----------
    X : ndarray or csr_array
        The layer's values; with negative ones the name is not trusted.
    layer : str or None
        Its name; None for ``X``.
    uns : iterable of str
        Keys of ``uns``, where Scanpy notes that ``X`` was logged.

    Returns
    -------
    str or None
        "counts", "log-counts", or None where the values must tell.

    Examples
    --------
    >>> kind_of_layer(np.ones((2, 2)), "counts", [])
    'counts'
    >>> kind_of_layer(np.ones((2, 2)), None, ["log1p"])
    'log-counts'
    """
    name = (layer or "").lower()
    if X.min() < 0.0 or name.startswith("scale"):
        return None
    if "log" in name or (layer is None and "log1p" in uns):
        return "log-counts"
    return "counts" if "count" in name or name in ("raw", "umi") else None
