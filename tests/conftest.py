"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Weights and vocabularies come from installed packages; a test that would reach for a hub fails instead.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("WANDB_MODE", "disabled")

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of third-party corpora named by FOVEATE_DATA; the test is skipped where there is none."""
    value = os.environ.get("FOVEATE_DATA")
    if not value:
        pytest.skip("FOVEATE_DATA is not set: third-party corpora are not part of the repository (data/README.md)")
    root = Path(value).resolve()
    if not root.is_dir():
        pytest.skip(f"FOVEATE_DATA={value} is not a folder")
    return root


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The top of the working tree."""
    return Path(__file__).resolve().parents[1]
