"""Streams follow from the seed and their names, today as in every saved result."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from mdec._support.random import (
    consensus_stream,
    member_stream,
    root_entropy,
    view_entropy,
)


def test_generators_give_128_bits_of_their_own() -> None:
    words = np.random.default_rng(3).integers(0, 2**32, size=4, dtype=np.uint64)
    expected = sum(int(word) * 2 ** (32 * i) for i, word in enumerate(words))
    assert root_entropy(np.random.default_rng(3)) == expected > 2**100
    words = np.random.RandomState(3).randint(0, 2**32, size=4, dtype=np.uint64)
    expected = sum(int(word) * 2 ** (32 * i) for i, word in enumerate(words))
    assert root_entropy(np.random.RandomState(3)) == expected > 2**96


def test_whole_numbers_are_the_seed_and_none_is_another_each_time() -> None:
    assert root_entropy(7) == root_entropy(np.int64(7)) == 7
    assert type(root_entropy(np.int64(7))) is int
    assert root_entropy(None) != root_entropy(None)


@pytest.mark.parametrize(
    ("member", "name", "attempt", "key"),
    [
        (0, "subspace", 0, (0, 0, 0)),
        (3, "kernel", 0, (3, 1, 0)),
        (3, "kmeans", 2, (3, 4, 2)),
        (5, "views", 1, (5, 14, 1)),
    ],
)
def test_a_stream_is_a_child_of_the_seed(
    member: int, name: str, attempt: int, key: tuple[int, ...]
) -> None:
    """A member of a file is made again from these numbers: they never change."""
    sequence = np.random.SeedSequence(11, spawn_key=key)
    expected = np.random.Generator(np.random.PCG64(sequence)).integers(0, 2**60, 5)
    found = member_stream(11, member, name, attempt).integers(0, 2**60, 5)
    np.testing.assert_array_equal(found, expected)


def test_the_consensus_has_a_stream_of_its_own() -> None:
    sequence = np.random.SeedSequence(11, spawn_key=(5,))
    expected = np.random.Generator(np.random.PCG64(sequence)).integers(0, 2**60, 5)
    np.testing.assert_array_equal(consensus_stream(11).integers(0, 2**60, 5), expected)


def test_views_have_seeds_by_name() -> None:
    digest = hashlib.sha256(b"genes").digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 32, 4)]
    sequence = np.random.SeedSequence(11, spawn_key=(14, *words))
    assert view_entropy(11, "genes") == sequence.generate_state(1)[0] == 2325154724
    seeds = [view_entropy(*each) for each in [(11, "Öl"), (11, "ol"), (12, "Öl")]]
    assert len(set(seeds)) == 3
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert view_entropy(11, "\ud800") != view_entropy(11, "?")
