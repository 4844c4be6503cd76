"""What an import costs: nothing that serves may pull in torch, and the package itself stays light."""

from __future__ import annotations

import subprocess
import sys

import pytest

import foveate

SERVING = [
    "foveate",
    "foveate.core",
    "foveate.core.context",
    "foveate.signals",
    "foveate.rules",
    "foveate.summarizers",
    "foveate.summarizers.llm",
    "foveate.memory",
    "foveate.serving",
    "foveate.cli.main",
    "foveate.cli.compress",
]
HEAVY = ("torch", "transformers", "peft", "accelerate", "datasets", "wandb")


def loaded_by(statement: str) -> set[str]:
    """The top-level modules in `sys.modules` of a fresh interpreter after the statement."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", SERVING)
def test_import_without_torch(module: str) -> None:
    assert not loaded_by(f"import {module}").intersection(HEAVY)


@pytest.mark.parametrize("module", ["foveate", "foveate.core.schema", "foveate.cli.main"])
def test_import_stays_light(module: str) -> None:
    assert not loaded_by(f"import {module}").intersection({"numpy", "rich", "jsonargparse", "tokenizers"})


@pytest.mark.parametrize("module", ["foveate.summarizers.llm", "foveate.cli.compress"])
def test_the_packages_of_the_llm_summarizer_come_late(module: str) -> None:
    assert not loaded_by(f"import {module}").intersection({"httpx", "tenacity"})


@pytest.mark.parametrize("name", foveate.__all__)
def test_public_names_resolve(name: str) -> None:
    assert getattr(foveate, name) is not None


def test_focus_manager_loads_without_torch() -> None:
    assert not loaded_by("from foveate import FocusManager; FocusManager").intersection(HEAVY)


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Focus'"):
        foveate.Focus  # noqa: B018
