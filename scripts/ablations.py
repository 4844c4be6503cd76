#!/usr/bin/env python3
"""Runs what scripts/ablations.yaml lists and writes docs/results/ablations.{jsonl,md,png}.

Every run resumes, and what has its rows is passed over, on whatever machine they were measured. Two processes at once
(on two cores) share the work safely, each with its own --only or --seeds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from foveate.core.files import write_atomically
from foveate.evaluation.ablations import markdown, save_plot
from foveate.evaluation.results import read_rows

RUNS, RESULTS = Path("runs/ablations"), Path("docs/results")
ROWS = RESULTS / "ablations.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAMES", help="variants, comma separated (default all)")
    parser.add_argument("--seeds", default="", metavar="N,N", help="only these seeds")
    parser.add_argument("--fresh", action="store_true", help="train and measure again what has its rows")
    parser.add_argument("--report", action="store_true", help="only write the table and the plot from the rows")
    args = parser.parse_args()
    plan = yaml.safe_load(Path("scripts/ablations.yaml").read_text(encoding="utf-8"))
    names = args.only.split(",") if args.only else list(plan["variants"])
    unknown = [name for name in names if name not in plan["variants"]]
    if unknown:
        parser.error(f"no variant {unknown[0]!r}: scripts/ablations.yaml has {', '.join(plan['variants'])}")
    seeds = [int(seed) for seed in args.seeds.split(",")] if args.seeds else plan["seeds"]
    if not args.report:
        for seed in seeds:
            for name in names:
                run_variant(plan, name, seed, args.fresh)
    report(plan)


def run_variant(plan: dict[str, Any], name: str, seed: int, fresh: bool) -> None:
    """Train and evaluate one variant with one seed on every fold that lacks rows, or on all."""
    variant = plan["variants"][name]
    for fold in plan["folds"]:
        if not fresh and measured(f"{name}.s{seed}", fold, plan["budgets"]):
            continue
        folder = RUNS / f"{name}.s{seed}"
        if "of" in variant:
            model = RUNS / f"{variant['of']}.s{seed}" / f"fold{fold}"
            train(plan, plan["variants"][variant["of"]], seed, fold, model)
            copy(model, folder / f"fold{fold}")
        else:
            train(plan, variant, seed, fold, folder / f"fold{fold}")
        policy = ["--policy", variant["policy"]] if "policy" in variant else []
        budgets = ",".join(map(str, plan["budgets"]))
        where = ["--split", "P1", "--fold", str(fold), "--method", str(folder), "--budgets", budgets]
        foveate("evaluate", "locomo", *where, *policy, "--out", str(ROWS), *["--fresh"] * fresh, quiet=True)


def measured(method: str, fold: int, budgets: list[int]) -> bool:
    """Whether the rows of a fold are there at every budget."""
    found = {row["budget"] for row in read_rows(ROWS) if (row["method"], row["split"]["fold"]) == (method, fold)}
    return found.issuperset(budgets)


def train(plan: dict[str, Any], variant: dict[str, Any], seed: int, fold: int, out: Path) -> None:
    """One run of the scorer, on the fold's encoder, which is trained once for all seeds."""
    extra = variant.get("encoder_args", [])
    kind = "-".join(["encoder", *extra]).replace("--", "").replace(".", "-")
    encoder = RUNS / kind / f"fold{fold}"
    if not (encoder / "result.json").is_file():
        foveate("train", plan["encoder"], "--out", str(encoder), "--data.fold", str(fold), *extra)
    if not (out / "result.json").is_file():
        own = ["--out", str(out), "--seed", str(seed), "--data.fold", str(fold), "--model.encoder.name", str(encoder)]
        foveate("train", plan["base"], *own, *variant.get("args", []))
    shutil.rmtree(out / "checkpoints", ignore_errors=True)
    shutil.rmtree(out / "best", ignore_errors=True)


def copy(source: Path, target: Path) -> None:
    """The same model under another name, without another copy of its bytes."""
    if not (target / "model").is_dir():
        shutil.copytree(source / "model", target / "model", copy_function=os.link)


def foveate(*arguments: str, quiet: bool = False) -> None:
    print("foveate", *arguments, flush=True)
    done = subprocess.run(["foveate", *arguments], stdout=subprocess.DEVNULL if quiet else None)
    if done.returncode:
        sys.exit(done.returncode)


def report(plan: dict[str, Any]) -> None:
    """The table and the plot, from the rows."""
    rows = read_rows(ROWS)
    what = {name: variant["what"] for name, variant in plan["variants"].items()}
    write_atomically(RESULTS / "ablations.md", markdown(rows, what))
    save_plot(rows, RESULTS / "ablations.png")
    print(f"written: {RESULTS / 'ablations.md'}, {RESULTS / 'ablations.png'}")


if __name__ == "__main__":
    main()
