"""The repository keeps its promises: tours that lead somewhere, configs that parse, no third-party data or weights."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest

from foveate.config.load import load_config
from foveate.corpora.root import KNOWN

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ROOT / "checkpoints" / "foveate-minilm"
CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))
FOLDERS = ["checkpoints", "configs", "data", "docs", "scripts", "slurm", "src", "tests"]
WEIGHTS = {".safetensors", ".onnx", ".pt", ".pth", ".bin", ".gguf", ".npz", ".npy", ".parquet"}
THIRD_PARTY = {
    "locomo10.json",
    "LOCCO.json",
    "LOCCO_L.json",
    "minilongbench_en.jsonl",
    "ALL_train_rebuilt.jsonl",
    "friendsqa_dev.json",
    "friendsqa_tst.json",
    "errors.json",
    "dialogsum.dev.jsonl",
    "dialogsum.test.jsonl",
    "conj_dev.tsv",
    "SNLI.txt",
    "ProSeCCo_final.json",
    "MTS-Dialog-TrainingSet.csv",
    "MTS-Dialog-ValidationSet.csv",
}


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """Every file of the repository, as git knows it."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip("not a git checkout")
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_tour_is_short_and_true() -> None:
    text = (ROOT / "docs" / "tour.md").read_text()
    stops = re.findall(r"^\d+\. \[`([^`]+)`\]\(\.\./\1\)", text, flags=re.MULTILINE)
    assert 3 <= len(stops) <= 7
    assert [stop for stop in stops if not (ROOT / stop).is_file()] == []


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/tour.md", "docs/METHOD.md"]
)
def test_relative_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    links = re.findall(r"\]\((?!https?://|#|mailto:)([^)#]+)", path.read_text())
    assert links
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_says_what_belongs_there(folder: str) -> None:
    assert (ROOT / folder / "README.md").read_text().strip()


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: str(path.relative_to(ROOT)))
def test_shipped_configs_parse(path: Path) -> None:
    assert load_config(path, []) is not None


def test_there_are_configs() -> None:
    assert CONFIGS


def test_no_weights_but_the_shipped_ones_and_no_large_files(tracked: list[Path]) -> None:
    shipped = [path for path in tracked if SHIPPED in path.parents]
    assert [path for path in tracked if path.suffix in WEIGHTS and path not in shipped] == []
    assert [path for path in tracked if path.stat().st_size > 3_000_000 and path not in shipped] == []
    assert sum(path.stat().st_size for path in shipped) < 12_000_000


def test_the_shipped_checkpoint_was_trained_on_nothing_that_forbids_it() -> None:
    config = json.loads((SHIPPED / "config.json").read_text())
    for source in (*config["trained_on"], *config["chosen_on"]):
        kind, _, name = source.removeprefix("cloze:").partition(":")
        folders = [folder for folder in KNOWN if folder.startswith(f"nli/{name}" if kind == "nli" else kind)]
        allowed = bool(folders) and all(KNOWN[folder].checkpoint == "yes" for folder in folders)
        assert kind == "synthetic" or allowed, source


def test_the_shipped_checkpoint_names_no_place_on_the_machine_that_made_it() -> None:
    for path in SHIPPED.iterdir():
        assert not [mark for mark in (b"site-packages", b'.py", line', b"/src/foveate") if mark in path.read_bytes()], (
            path
        )


def test_no_third_party_file_by_name(tracked: list[Path]) -> None:
    assert [path for path in tracked if path.name in THIRD_PARTY] == []


def test_no_third_party_file_by_content(tracked: list[Path], data_root: Path) -> None:
    theirs = [path for path in data_root.rglob("*") if path.is_file() and not path.name.startswith("LICENSE")]
    sizes = {path.stat().st_size for path in tracked}
    digests = {digest(path) for path in theirs if path.stat().st_size in sizes}
    assert theirs
    assert [path for path in tracked if digest(path) in digests] == []


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
