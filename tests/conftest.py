"""Shared fixtures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of reference data; tests that need it skip without it."""
    beside = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("MDEC_SHARED", beside))
    if not (folder / "golden").is_dir():
        pytest.skip(f"needs the reference data, not found in {folder}")
    return folder
