"""The methods that the paper compares with, one signature for all.

Every method is a consensus function, ``name(ensemble, n_clusters, *, ...,
random_state=None) -> labels``, and an estimator of the same name in capitals that
generates the ensemble first. `BASELINES` maps the names of the paper's tables to the
functions and `GENERATION` to the ensemble each takes there, so that one generation can
feed many functions.
"""

from mdec.bench.baselines._baseline import (
    Consensus,
    StratifiedBaseline,
    generate_kmeans_ensemble,
    generate_stratified_ensemble,
)
from mdec.bench.baselines._graphs import (
    EAC,
    LWEA,
    LWGP,
    PTA,
    PTGP,
    eac,
    lwea,
    lwgp,
    pta,
    ptgp,
)
from mdec.bench.baselines._label_kmeans import ECC, KCC, SEC, ecc, kcc, sec
from mdec.bench.baselines._partitioning import (
    CSPA,
    HGPA,
    MCLA,
    SSCSPA,
    SSHGPA,
    SSMCLA,
    cspa,
    hgpa,
    mcla,
)
from mdec.bench.baselines._spce import SPCE, spce

_ESTIMATORS = (
    *(SSCSPA, SSHGPA, SSMCLA, KCC, PTGP, SEC, ECC, LWGP, SPCE),
    *(EAC, LWEA, PTA, CSPA, HGPA, MCLA),
)

BASELINES: dict[str, Consensus] = {
    each.__name__: each._consensus for each in _ESTIMATORS
}

GENERATION: dict[str, str] = {
    each.__name__: "stratified" if issubclass(each, StratifiedBaseline) else "kmeans"
    for each in _ESTIMATORS
}

__all__ = [
    "BASELINES",
    "CSPA",
    "EAC",
    "ECC",
    "GENERATION",
    "HGPA",
    "KCC",
    "LWEA",
    "LWGP",
    "MCLA",
    "PTA",
    "PTGP",
    "SEC",
    "SPCE",
    "SSCSPA",
    "SSHGPA",
    "SSMCLA",
    "cspa",
    "eac",
    "ecc",
    "generate_kmeans_ensemble",
    "generate_stratified_ensemble",
    "hgpa",
    "kcc",
    "lwea",
    "lwgp",
    "mcla",
    "pta",
    "ptgp",
    "sec",
    "spce",
]
