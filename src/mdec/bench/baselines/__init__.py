"""The methods that the paper compares with, one signature for all.

Every method is a consensus function, ``name(ensemble, n_clusters, *, ...,
random_state=None) -> labels``, and an estimator of the same name in capitals that
generates the ensemble first. `BASELINES` maps the names of the paper's tables to the
functions and `GENERATION` to the ensemble each takes there, so that one generation can
feed many functions.
"""

from mdec.bench.baselines._estimators import (
    BASELINES,
    GENERATION,
    Baseline,
    PlacingBaseline,
    StratifiedBaseline,
)
from mdec.bench.baselines._generation import (
    generate_kmeans_ensemble,
    generate_stratified_ensemble,
)
from mdec.bench.baselines._graphs import eac, lwea, lwgp, pta, ptgp
from mdec.bench.baselines._label_kmeans import ecc, kcc, sec
from mdec.bench.baselines._partitioning import EXAMPLE, cspa, hgpa, mcla
from mdec.bench.baselines._spce import spce
from mdec.weights import ensemble_driven_cluster_index

__all__ = ["BASELINES", "CSPA", "EAC", "ECC", "GENERATION", "HGPA", "KCC", "LWEA"]
__all__ += ["LWGP", "MCLA", "PTA", "PTGP", "SEC", "SPCE", "SSCSPA", "SSHGPA", "SSMCLA"]
__all__ += ["cspa", "eac", "ecc", "generate_kmeans_ensemble"]
__all__ += ["generate_stratified_ensemble", "hgpa", "kcc", "lwea", "lwgp", "mcla"]
__all__ += ["pta", "ptgp", "sec", "spce"]


class SSCSPA(StratifiedBaseline, consensus=cspa, example=EXAMPLE):
    """Cluster-based similarity partitioning of stratified subspaces."""


class SSHGPA(StratifiedBaseline, consensus=hgpa, example=EXAMPLE):
    """Hypergraph partitioning of stratified subspaces."""


class SSMCLA(StratifiedBaseline, PlacingBaseline, consensus=mcla, example=EXAMPLE):
    """Meta-clustering of stratified subspaces."""


class KCC(PlacingBaseline, consensus=kcc):
    """K-means-based consensus clustering."""


class PTGP(Baseline, consensus=ptgp):
    """Probability trajectory based graph partitioning."""


class SEC(PlacingBaseline, consensus=sec, example="n_init=5, random_state=0"):
    """Spectral ensemble clustering."""

    _by_degree = True


class ECC(PlacingBaseline, consensus=ecc):
    """Entropy-based consensus clustering."""


class LWGP(PlacingBaseline, consensus=lwgp):
    """Locally weighted graph partitioning."""

    _weigh = staticmethod(ensemble_driven_cluster_index)
    _by_degree = True


class SPCE(Baseline, consensus=spce):
    """Self-paced clustering ensemble."""


class EAC(PlacingBaseline, consensus=eac):
    """Evidence accumulation clustering."""


class LWEA(PlacingBaseline, consensus=lwea):
    """Locally weighted evidence accumulation."""

    _weigh = staticmethod(ensemble_driven_cluster_index)


class PTA(Baseline, consensus=pta):
    """Probability trajectory accumulation."""


class CSPA(Baseline, consensus=cspa, example=EXAMPLE):
    """Cluster-based similarity partitioning."""


class HGPA(Baseline, consensus=hgpa, example=EXAMPLE):
    """Hypergraph partitioning."""


class MCLA(PlacingBaseline, consensus=mcla, example=EXAMPLE):
    """Meta-clustering."""
