"""The methods that the paper compares with, one signature for all.

Every method is a consensus function, ``name(ensemble, n_clusters, *, ...,
random_state=None) -> labels``, and an estimator of the same name in capitals that
generates the ensemble first. `BASELINES` maps the names of the paper's tables to the
functions and `GENERATION` to the ensemble each takes there, so that one generation can
feed many functions.
"""

from mdec.baselines._estimator import Consensus, StratifiedBaseline
from mdec.baselines._generation import (
    generate_kmeans_ensemble,
    generate_stratified_ensemble,
)
from mdec.baselines._kcc import ECC, KCC, ecc, kcc
from mdec.baselines._local_weights import EAC, LWEA, LWGP, eac, lwea, lwgp
from mdec.baselines._partitioning import (
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
from mdec.baselines._ptgp import PTA, PTGP, pta, ptgp
from mdec.baselines._sec import SEC, sec
from mdec.baselines._spce import SPCE, spce

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
