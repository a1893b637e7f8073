"""Reports of made-up data, each made once."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from mdec import MDEC
from mdec.report import RunNotes, describe_clustering, render_report
from mdec.tables import Table

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></svg><script>document.title='owned'</script>",
    "{{ 7 * 7 }}",
    "n" * 200,
    "javascript:alert(1)",
    "\u202e\u2028evil &amp; <b>bold</b>",
    '=HYPERLINK("http://x.invalid","click")',
    "</template></script><!--",
]


def pair_consensus(halves):
    """Return the share of the halves that put two samples together, for all pairs."""
    return np.mean([half[:, None] == half for half in halves], axis=0)


def make_report(
    n_samples, n_clusters=3, *, hostile=False, preparation=None, raw=None, one=False
):
    """Return what a report describes, its page and its ensemble's model."""
    rng = np.random.default_rng(0)
    group = np.arange(n_samples) % n_clusters
    X = rng.normal(size=(n_samples, 14))
    X += 2.0 * rng.normal(size=(n_clusters, 14))[group]
    model = MDEC(n_clusters, ensemble_size=30, random_state=0).fit(X)
    if one:
        model = model.with_clustering(model.clustering_.recluster(1))
    names = [f"sample {i}" for i in range(n_samples)]
    sex = np.where(group % 2, "f", "m").tolist()
    columns = {"age": [str(20 + i % 50) for i in range(n_samples)], "sex": sex}
    if hostile:
        names = [f"{HOSTILE[i % len(HOSTILE)]}{i}" for i in range(n_samples)]
        columns = {HOSTILE[0]: [HOSTILE[i % 4] for i in range(n_samples)]}
    features = [*HOSTILE, *"abcd"] if hostile else [f"g{i}" for i in range(14)]
    classes = np.array(HOSTILE)[group] if hostile else group.astype(str)
    described = describe_clustering(
        model.clustering_,
        table=Table(X, names, features, classes, columns=columns),
        notes=RunNotes(
            title="Clusters of <u>table</u>.csv",
            settings={"command": "mdec fit 'a <b>.csv'", "file": "<i>x</i>"},
            preparation=preparation,
            raw=raw,
            python=lambda n_clusters: f"labels = '<b>{n_clusters}'",
            again="mdec consensus 'a <b>/ensemble.npz'",
        ),
    )
    return described, render_report(described), (model, X)


@pytest.fixture(scope="session")
def reports():
    """Give the report of so many samples, made when it is first asked for."""

    @cache
    def report(n_samples, n_clusters=3, *, hostile=False):
        return make_report(n_samples, n_clusters, hostile=hostile)

    return report


@pytest.fixture(scope="session")
def prepared_report():
    """Make the report of values that were prepared first."""
    return lambda preparation, raw=None: make_report(
        42, preparation=preparation, raw=raw
    )
