"""Seeds: one root, one child per member, one named stream per purpose."""

from __future__ import annotations

import hashlib
import secrets

import numpy as np
from sklearn.utils import check_random_state

RandomState = int | np.random.RandomState | np.random.Generator | None

# The position of a name is part of every seed, so new names go at the end.
_STREAMS = (
    "subspace",
    "kernel",
    "n_clusters",
    "solver",
    "kmeans",
    "consensus",
    "strata",
    "selection",
    "pool",
    "landmarks",
    "preparation",
    "samples",
    "which_kernel",
    "own_base",
    "views",
)


def root_entropy(random_state: RandomState) -> int:
    """Return the integer from which every stream of a run is derived.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None
        An integer is used as it is; a generator is asked for 128 bits; None
        takes fresh entropy from the operating system.

    Returns
    -------
    int
        Entropy for a `numpy.random.SeedSequence`.
    """
    if random_state is None:
        return secrets.randbits(128)
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        words = random_state.integers(0, 2**32, size=4, dtype=np.uint64)
    else:
        generator = check_random_state(random_state)
        words = generator.randint(0, 2**32, size=4, dtype=np.uint64)
    return sum(int(word) << (32 * i) for i, word in enumerate(words))


def member_stream(
    entropy: int, member: int, name: str, attempt: int = 0
) -> np.random.Generator:
    """Return the generator of one purpose inside one member.

    Streams depend on the names alone, so a member is the same whatever the
    ensemble's size, and can be recomputed without the others.
    """
    return _stream(entropy, member, _STREAMS.index(name), attempt)


def view_entropy(entropy: int, name: str) -> int:
    """Return the root of the streams of one of several views, by its name.

    A view's members do not depend on the other views, nor on their order.
    """
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    key = (_STREAMS.index("views"), *words)
    sequence = np.random.SeedSequence(entropy, spawn_key=key)
    # As many bits as scikit-learn takes for a seed.
    return int(sequence.generate_state(1)[0])


def consensus_stream(random_state: RandomState) -> np.random.Generator:
    """Return the generator of a consensus function."""
    return _stream(root_entropy(random_state), _STREAMS.index("consensus"))


def _stream(entropy: int, *key: int) -> np.random.Generator:
    sequence = np.random.SeedSequence(entropy, spawn_key=key)
    return np.random.Generator(np.random.PCG64(sequence))
