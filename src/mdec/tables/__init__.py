"""Tables of samples by features: read from files, and results put back."""

from __future__ import annotations

from typing import Any

from mdec.estimator import MDEC
from mdec.tables.reading import Table, read_table

__all__ = ["Table", "cluster_frame", "read_table"]


def cluster_frame(frame: Any, n_clusters: int | str = "auto", **parameters: Any) -> Any:
    """Cluster the rows of a pandas DataFrame.

    Parameters
    ----------
    frame : pandas.DataFrame
        Samples in rows, numbers in columns.
    n_clusters : int or "auto"
        Number of clusters.
    **parameters
        Further parameters of `MDEC`.

    Returns
    -------
    pandas.DataFrame
        Cluster, confidence and second choice of each row, with the rows' index; the
        fitted estimator is in ``attrs["mdec"]``.

    Examples
    --------
    >>> import numpy, pandas
    >>> frame = pandas.DataFrame(numpy.random.default_rng(0).normal(size=(20, 4)))
    >>> found = cluster_frame(frame, 2, ensemble_size=5, random_state=0)
    >>> list(found.columns)
    ['cluster', 'confidence', 'second_choice']
    """
    import pandas

    model = MDEC(n_clusters, **parameters).fit(frame)
    columns = {
        "cluster": model.labels_,
        "confidence": model.confidence_,
        "second_choice": model.clustering_.second_choice,
    }
    found = pandas.DataFrame(columns, index=frame.index)
    found.attrs["mdec"] = model
    return found
