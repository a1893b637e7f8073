"""What values are: expression of some kind, or other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import gen_batches

from mdec._support.arrays import Array
from mdec.preparation import recipes

# Fewer features are an ordinary table, or an embedding.
MIN_FEATURES = 100

# Samples that are looked at to tell what the values are, and numbers of theirs.
SAMPLES, _NUMBERS = 1000, 2**22
# Numbers that are filled in at a time.
_BLOCK = 2**18

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
    return next((kind, reason) for holds, kind, reason in _rules(X) if holds)


def _rules(X: Array | sparse.csr_array) -> Iterator[tuple[bool, str, str]]:
    """Yield whether values are of a kind, which, and how one sees it; the first counts.

    The last holds always.
    """
    reason = f"{X.shape[1]} features are too few for expression data."
    yield X.shape[1] < MIN_FEATURES, "other", reason
    low, high = float(X.min()), float(X.max())
    reason = (
        "All values lie between -1 and 1, as bits, proportions, unit vectors and "
        "scaled features do."
    )
    yield max(-low, high) <= 1.0, "other", reason
    step = math.ceil(X.shape[0] / max(1, min(SAMPLES, _NUMBERS // X.shape[1])))
    if low < 0.0:
        yield from _rules_of_signed(recipes.fill_zeros(X), X[::step])
    else:
        yield from _rules_of_positive(X[::step])


def _rules_of_positive(
    rows: Array | sparse.csr_array,
) -> Iterator[tuple[bool, str, str]]:
    low, high = float(rows.min()), float(rows.max())
    whole = bool(_of_each(rows, lambda part: (part == np.rint(part)).all(axis=1)).all())
    n_filled = _of_each(rows, lambda part: np.count_nonzero(part, axis=1)).sum()
    at_top = _of_each(rows, lambda part: (part == high).sum(axis=1)).sum()
    reason = f"Whole numbers pile up at the largest, {high:g}, as in images."
    yield whole and high <= 255.0 and at_top > 0.005 * n_filled, "other", reason
    reason = "Every sample sums to 100: these are percentages."
    yield np.allclose(recipes.sample_totals(rows), 100.0, rtol=1e-3), "other", reason
    reason = (
        "Undoing the logarithm gives each sample whole multiples of one number: "
        "these are counts, scaled and logged."
    )
    logs = not whole and high <= _LOGGED[1] and _logs_of_counts(rows)
    yield logs, "log-counts", reason
    skewness = _typical_moment(rows, 3)
    raw = skewness >= _RAW_SKEWNESS
    shown = f"skewness {skewness:.1f} in a typical sample"
    far = f"far above the rest ({shown})"
    reason = f"Whole numbers from zero, a few of them {far}: these are counts."
    yield raw and whole and low == 0.0, "counts", reason
    n_numbers = rows.shape[0] * rows.shape[1]
    silent = float((n_numbers - n_filled) / n_numbers)
    if not whole and silent >= _SILENT:
        zeros = f"{silent:.0%} of the values are zero"
        reason = (
            f"{zeros}, none is negative and a few are {far}: these are abundances of "
            "reads, such as TPM, FPKM or RPKM."
        )
        yield raw and high > _LOGGED[1], "abundances", reason
        reason = (
            f"{zeros} and the largest is {high:.3g}, as logarithms of abundances of "
            f"reads are, to base {'10' if high <= _LOGGED_10[1] else '2 or e'}."
        )
        logs = rows.shape[1] >= _GENES and _LOGGED_10[0] <= high <= _LOGGED[1]
        agreeing = logs and _typical_agreement(rows) >= _CELL_AGREEMENT
        yield agreeing, "log-abundances", reason
    middle = float(np.median(_of_each(rows, lambda part: np.median(part, axis=1))))
    reason = (
        f"No value is negative, a few are {far} and half are below {middle:.2g}: these "
        "are ratios."
    )
    yield raw and _RATIOS[0] <= middle <= _RATIOS[1], "ratios", reason
    reason = f"No value is negative and a few are {far}: these are raw intensities."
    yield raw, "intensities", reason
    # Zeros are what is left of silent genes, or of neurons; genes have their levels.
    neurons = silent > 0.01 and _typical_agreement(rows) < _AGREEMENT
    span, logs = f"from {low:.3g} to {high:.3g}", _LOGGED[0] <= high <= _LOGGED[1]
    reason = f"Values reach {span} without a long tail"
    reason += ", as logarithms of intensities do."
    yield logs and not whole and not neurons, "logged", reason
    reason = f"Values {span} are neither raw nor logged expression: {shown}."
    yield True, "other", reason


def _rules_of_signed(
    X: Array, some: Array | sparse.csr_array
) -> Iterator[tuple[bool, str, str]]:
    rows = recipes.fill_zeros(some).astype(np.float64)
    low, high = float(rows.min()), float(rows.max())
    spreads = recipes.feature_spreads(X)
    varying = np.log(spreads[spreads > 0.0])
    # Were all true spreads alike, their logarithms would still differ by about this.
    alike = varying.size < 2 or varying.std() <= 0.05 + 1.0 / math.sqrt(X.shape[0])
    yield alike, "other", "All features vary alike, as standardised ones do."
    relative = rows / max(-low, high)
    lengths = np.linalg.norm(relative, axis=1)
    alike = lengths.std() <= 1e-3 * lengths.mean()
    yield alike, "other", "All samples have the same length, as embeddings have."
    places = np.argsort(np.argsort(-spreads, kind="stable"), kind="stable")
    ordered = np.corrcoef(places, np.arange(places.size))[0, 1] > 0.9
    reason = "Features come in the order of their variance: a projection."
    yield ordered, "other", reason
    skewness, kurtosis = _typical_moment(rows, 3), _typical_moment(rows, 4) - 3.0
    reason = (
        f"A few values are far above the rest (skewness {skewness:.1f} in a typical "
        "sample): these are raw intensities less a background."
    )
    yield skewness >= _RAW_SKEWNESS and high > _LOGGED[1], "intensities", reason
    offset = float(np.median(np.median(relative, axis=1))) / relative.std()
    logs = low >= -_LOGGED[0] and _LOGGED[0] <= high <= _LOGGED[1]
    span = f"from {low:.3g} to {high:.3g}"
    reason = f"Values reach {span} and most are positive"
    reason += ", as logarithms of scaled counts are."
    yield logs and offset >= 0.5, "logged", reason
    wide = X.shape[1] > X.shape[0] and max(-low, high) <= _LOGGED[1]
    tails = f"excess kurtosis {kurtosis:.1f}"
    reason = (
        f"Values {span} lie around zero with heavy tails ({tails} in a typical "
        "sample): these are log-ratios."
    )
    around = wide and abs(offset) < 0.5 and kurtosis >= _RATIO_KURTOSIS
    yield around, "log-ratios", reason
    reason = (
        f"Values {span} around zero are not log-ratios: {tails} and skewness "
        f"{skewness:.1f} in a typical sample."
    )
    yield True, "other", reason


def _of_each(
    rows: Array | sparse.csr_array, measure: Callable[[Array], Array]
) -> NDArray[Any]:
    """Return a measure of each row; a few rows at a time are filled in."""
    some = gen_batches(rows.shape[0], max(1, _BLOCK // rows.shape[1]))
    parts = (recipes.fill_zeros(rows[each]).astype(np.float64) for each in some)
    return np.concatenate([measure(part) for part in parts])


def _typical_moment(rows: Array | sparse.csr_array, degree: int) -> float:
    """Return the median over the samples of a standardised moment."""
    found = _of_each(rows, lambda part: (_standardised(part) ** degree).mean(axis=1))
    return float(np.median(found))


def _typical_agreement(rows: Array | sparse.csr_array) -> float:
    """Return the median correlation of samples with the mean of all."""
    mean = _standardised(rows.mean(axis=0, dtype=np.float64).reshape(1, -1))
    found = _of_each(rows, lambda part: (_standardised(part) * mean).mean(axis=1))
    return float(np.median(found))


def _standardised(rows: Array) -> Array:
    return recipes.scale_to_spread(recipes.center_samples(rows))


def _logs_of_counts(rows: Array | sparse.csr_array) -> bool:
    """Tell whether samples are log(1 + c n) of counts n, with a c of their own."""

    def share(row: Array) -> float:
        values = np.expm1(row[row > 0.0])
        multiples = values / values.min(initial=math.inf)
        # Larger ones are not whole any more after rounding to float32.
        multiples = multiples[(multiples > 1.5) & (multiples < 1000.0)]
        near = np.abs(multiples - np.rint(multiples)) < 0.02
        return float(near.mean()) if near.size else math.nan

    shares = _of_each(rows, lambda part: np.array([share(row) for row in part]))
    known = shares[~np.isnan(shares)]
    return known.size > shares.size / 2 and float(np.median(known)) > 0.9


def kind_of_layer(
    X: Array | sparse.csr_array, layer: str | None, uns: Iterable[str]
) -> str | None:
    """Tell what the values of an AnnData layer are by its name, where that is clear.

    The name is None for ``X``, of which Scanpy notes in ``uns`` that it was logged. It
    is not trusted with negative values; without an answer the values must tell.

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
