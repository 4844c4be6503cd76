"""Result rows: required keys, merging by key, atomic files, reprinting."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from foveate.core.errors import DataError
from foveate.evaluation.records import Budget, Record, average, from_json, metrics, to_json
from foveate.evaluation.results import (
    REQUIRED,
    RunFacts,
    add_rows,
    check_writable,
    find_rows,
    git_commit,
    key_of,
    make_row,
    merge,
    read_rows,
    write_rows,
)

FACTS = RunFacts("locomo", "sha", "P0", "minilm", "chrono", frozenset({"5"}), 2, 13, "foveate ...", "abc")


METRICS = set(
    "overall_5 overall_1to4 macro_5 clean_1to4 c1 c2 c3 c4 c5 false_refusal erb erb_all erb_any coverage asc asc_rel "
    "r_mean r_pooled token_reduction lat_p50 lat_p95 budget_violations".split()
)


def record(question: str, category: str, erb: float | None, budget: Budget = 256, **changes: object) -> Record:
    conversation = question.split(":")[0]
    values: dict[str, object] = {
        "question": question,
        "conversation": conversation,
        "category": category,
        "budget": budget,
        "tokens": 200,
        "history": 1000,
        "erb": erb,
        "all": None if erb is None else float(erb == 1),
        "any": None if erb is None else float(erb > 0),
        "session": erb,
        "coverage": erb,
        "asc": 0.5,
        "asc_stem": 0.5,
        "asc_full": 1.0,
        "kept": ("D1:1",),
        "seconds": 0.01,
        "violation": False,
    }
    return Record(**{**values, **changes})  # type: ignore[arg-type]


RECORDS = [
    record("a:q0", "1", 1.0),
    record("a:q1", "4", 0.5),
    record("b:q0", "4", 0.0),
    record("b:q1", "5", 1.0, tokens=400),
    record("b:q2", "3", None),
]


def row(method: str = "bm25", budget: Budget = 256, digest: str = "m") -> dict:
    records = [record(r.question, r.category, r.erb, budget) for r in RECORDS]
    return make_row(
        FACTS,
        records,
        method=method,
        q_aware=True,
        label_leak=False,
        train_data="none",
        method_digest=digest,
        code_digest="code",
    )


def test_a_row_has_every_required_key_and_names_what_was_not_measured() -> None:
    found = row()
    assert set(REQUIRED) <= set(found)
    assert found["reader"] is None
    assert found["split"] == {"name": "P0", "fold": None}
    assert not METRICS - set(found["metrics"])
    assert found["metrics"]["overall_5"] is None
    assert found["metrics"]["c1"] is None


def test_category_5_is_never_pooled_and_questions_without_evidence_are_left_out() -> None:
    found = metrics(RECORDS, frozenset({"5"}))
    assert found["erb"] == pytest.approx(0.5)
    assert found["erb_5"] == 1.0
    assert found["erb_by_category"] == {"1": 1.0, "3": None, "4": 0.25, "5": 1.0}
    assert found["r_mean"] == pytest.approx((4 * 0.2 + 0.4) / 5)
    assert found["r_pooled"] == pytest.approx(1200 / 5000)
    assert found["token_reduction"] == pytest.approx(1 - 0.24)
    assert found["asc_rel"] == 0.5
    assert row()["n"] == 5
    assert row()["n_evidence"] == 3


def test_clusters_hold_what_a_paired_test_needs() -> None:
    assert row()["clusters"] == {"a": [2, 1.5], "b": [1, 0.0]}
    low, high = row()["ci"]["cluster"]["erb"]
    assert 0.0 <= low <= 0.5 <= high <= 1.0


def test_nothing_measured_is_none_not_zero() -> None:
    found = metrics([record("a:q0", "1", None, asc=None, asc_stem=None, asc_full=None)], frozenset())
    assert found["erb"] is found["erb_5"] is found["asc"] is found["asc_rel"] is None


def test_violations_are_counted() -> None:
    assert metrics([record("a:q0", "1", 1.0, violation=True)], frozenset())["budget_violations"] == 1


def test_seeds_are_averaged() -> None:
    found = average([record("a:q0", "1", 1.0, tokens=100), record("a:q0", "1", 0.0, tokens=200, kept=())])
    assert (found.erb, found.tokens, found.kept) == (0.5, 150, ("D1:1",))
    assert average([record("a:q0", "1", None), record("a:q0", "1", None)]).erb is None


def test_records_survive_json() -> None:
    for one in RECORDS:
        assert from_json(json.loads(json.dumps(to_json(one)))) == one
    with pytest.raises(DataError, match="delete it"):
        from_json({"question": "x"})


def test_merging_replaces_in_place_and_counts_the_looks() -> None:
    old = merge([], [row("bm25"), row("dense")])
    again = merge(old, [row("bm25", digest="other"), row("bm25", 512)])
    assert [(r["method"], r["budget"]) for r in again] == [("bm25", 256), ("dense", 256), ("bm25", 512)]
    assert [r["test_eval_count"] for r in again] == [2, 1, 1]
    assert again[0]["method_digest"] == "other"
    assert key_of(row()) != key_of(row(budget=512))


def test_files_are_written_whole_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "rows.jsonl"
    assert read_rows(path) == []
    write_rows(path, [row()])
    assert read_rows(path)[0]["metrics"]["erb"] == 0.5
    assert [p.name for p in path.parent.iterdir()] == ["rows.jsonl"]


def test_equal_rows_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_rows(tmp_path / name, merge([], [row(), row(budget=512)]))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("line", "message"),
    [("{", "line 1 is not JSON"), ("{}", "dataset, data_sha"), ("[]", "missing")],
)
def test_a_broken_file_names_its_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(DataError, match=message):
        read_rows(path)


def test_stored_rows_are_found_only_when_complete_and_of_the_same_data() -> None:
    stored = [row(budget=256), row(budget=512)]
    assert find_rows(stored, FACTS, "bm25", [256, 512]) == stored
    assert find_rows(stored, FACTS, "bm25", [256, 1024]) is None
    assert find_rows(stored, FACTS, "dense", [256]) is None
    other = RunFacts("locomo", "changed", "P0", "minilm", "chrono", frozenset({"5"}), 2, 13, "", None)
    assert find_rows(stored, other, "bm25", [256]) is None


def test_commit_is_none_outside_a_repository(tmp_path: Path) -> None:
    assert git_commit(tmp_path) is None


def test_evaluations_that_end_at_once_keep_each_others_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: add_rows(path, [row(f"m{k}")]), range(16)))
    assert {found["method"] for found in read_rows(path)} == {f"m{k}" for k in range(16)}


@pytest.mark.parametrize("name", ["afile/o.jsonl", "/proc/x/o.jsonl", "folder"])
def test_a_file_that_cannot_be_written_is_known_beforehand(tmp_path: Path, name: str) -> None:
    (tmp_path / "afile").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="cannot be written"):
        check_writable(tmp_path / name)
    check_writable(tmp_path / "new" / "o.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["afile", "folder"]


def test_rows_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "o.jsonl").write_bytes(b"\xff")
    for path in (tmp_path, tmp_path / "o.jsonl"):
        with pytest.raises(DataError, match="cannot be read"):
            read_rows(path)
