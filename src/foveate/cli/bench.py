"""`foveate bench`: how fast this machine packs, encodes and trains, beside its own matrix product in the same run."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

from foveate import __version__
from foveate.cli.speed import (
    EncodeSpeed,
    PackSpeed,
    SolverSpeed,
    StepSpeed,
    Times,
    encode_speeds,
    numpy_peak,
    pack_speed,
    padding,
    solver_speed,
    torch_peak,
)
from foveate.core.errors import ConfigError, MissingExtraError
from foveate.memory.choices import RULE_NAMES, load_scorer
from foveate.serving.onnx_scorer import read_manifest

_EPILOG = f"""\
scorers: {", ".join(RULE_NAMES)}, or the folder of an export

Numbers of one run compare with each other only: machines, and the load on one machine, differ more than methods do.
That is why the ratios come first, and why the matrix product is measured in the same run.

examples:
  foveate bench
  foveate bench --turns 600,6000 --scorer runs/export --export runs/export --json bench.json
  OMP_NUM_THREADS=1 foveate bench --turns 600 --seconds 1
"""


@dataclass(frozen=True, slots=True)
class Report:
    """All that was measured; what was not asked for is empty or None."""

    machine: dict[str, Any]
    scorer: str
    budget: int
    packing: tuple[PackSpeed, ...]
    solver: SolverSpeed
    numpy_gflops: float
    torch_gflops: float | None
    encoding: tuple[EncodeSpeed, ...]
    padding_sorted: float | None
    padding_unsorted: float | None
    steps: tuple[StepSpeed, ...] = ()


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.epilog = _EPILOG
    parser.add_argument("--turns", default="600,6000,60000", metavar="N,N", help="lengths (default 600,6000,60000)")
    parser.add_argument("--budget", type=int, default=2048, metavar="N", help="tokens a context (default 2048)")
    parser.add_argument("--scorer", default="chat", metavar="NAME", help="what scores the turns (default chat)")
    parser.add_argument("--counter", default="minilm", metavar="SPEC", help="token counter (default minilm)")
    parser.add_argument(
        "--items", type=int, default=6000, metavar="N", help="the solver's problem (default 6000 items)"
    )
    parser.add_argument("--solver-budget", type=int, default=4096, metavar="N", help="its budget (default 4096)")
    parser.add_argument("--export", type=Path, metavar="FOLDER", help="also time the encoders of this export")
    parser.add_argument("--encode-turns", type=int, default=512, metavar="N", help="turns to encode (default 512)")
    parser.add_argument("--reader", metavar="NAME", help="also time training steps, without and with this reader")
    parser.add_argument("--reader-tokens", default="256,512", metavar="N,N", help="what it is shown (default 256,512)")
    parser.add_argument("--seconds", type=float, default=3.0, metavar="S", help="time a measurement (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything as JSON")


def run(args: argparse.Namespace) -> int:
    """Measures, prints, and writes the JSON where asked."""
    sizes, shown = _sizes("--turns", args.turns), _sizes("--reader-tokens", args.reader_tokens)
    _at_least_one("--items", args.items)
    _at_least_one("--solver-budget", args.solver_budget)
    _at_least_one("--encode-turns", args.encode_turns)
    if not 0 < args.seconds < math.inf:
        raise ConfigError(f"--seconds {args.seconds}: give a time above 0")
    load_scorer(args.scorer)
    if args.export is not None:
        read_manifest(args.export)
    if args.reader is not None:
        _step_speed().check_reader(args.reader)
    report = _measure(args, sizes, shown)
    print(text_of(report))
    if args.json is not None:
        _write(args.json, json.dumps(asdict(report), indent=1) + "\n")
    return 0


def text_of(report: Report) -> str:
    """The report as text, ratios first."""
    return "\n".join(
        [*_ratios(report), "", *_packing(report), "", *_solver(report.solver), "", *_encoding(report), *_steps(report)]
    )


def _sizes(option: str, text: str) -> list[int]:
    try:
        sizes = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ConfigError(f"{option} {text!r}: give numbers, for instance 600,6000") from None
    if not sizes or min(sizes) < 1:
        raise ConfigError(f"{option} {text!r}: give lengths of at least 1, for instance 600,6000")
    return sorted(set(sizes))


def _at_least_one(option: str, value: int) -> None:
    if value < 1:
        raise ConfigError(f"{option} {value}: give at least 1")


def _measure(args: argparse.Namespace, sizes: Sequence[int], shown: Sequence[int]) -> Report:
    _say("matrix product")
    numpy_gflops, torch_gflops = numpy_peak(), torch_peak()
    packing: list[PackSpeed] = []
    for turns in sizes:
        _say(f"packing {turns:,} turns")
        packing.append(pack_speed(turns, args.budget, args.scorer, args.counter, args.seconds))
    _say(f"solving {args.items:,} items in {args.solver_budget:,} tokens")
    solver = solver_speed(args.items, args.solver_budget, args.seconds)
    encoding: tuple[EncodeSpeed, ...] = ()
    waste: tuple[float | None, float | None] = (None, None)
    if args.export is not None:
        _say(f"encoding {args.encode_turns:,} turns")
        encoding = tuple(encode_speeds(args.export, args.encode_turns, args.seconds))
        waste = padding(args.export, args.encode_turns)
    steps: tuple[StepSpeed, ...] = ()
    if args.reader is not None:
        _say("training steps")
        steps = tuple(_step_speed().step_speeds(args.reader, shown, args.seconds))
    return Report(
        _machine(),
        args.scorer,
        args.budget,
        tuple(packing),
        solver,
        numpy_gflops,
        torch_gflops,
        encoding,
        *waste,
        steps,
    )


def _step_speed() -> ModuleType:
    """The module that needs torch.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        from foveate.cli import step_speed
    except ImportError as error:
        raise MissingExtraError(error.name or "torch", "train") from error
    return step_speed


def _say(what: str) -> None:
    print(f"foveate: measuring {what} ...", file=sys.stderr)


def _machine() -> dict[str, Any]:
    return {
        "foveate": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
    }


def _ratios(report: Report) -> list[str]:
    solver = report.solver
    faster = solver.exact_seconds / solver.seconds
    lines = [
        "ratios",
        f"  optimal against the dynamic program: {faster:.1f} times as fast, {100 * solver.loss:.4f} % below it",
    ]
    for small, large in pairwise(report.packing):
        grown, times = large.cached.p50 / small.cached.p50, large.turns / small.turns
        what = f"a cached context at {large.turns:,} turns, against {small.turns:,}"
        lines.append(f"  {what}: {grown:.1f} times the time for {times:.1f} times the turns")
    rate = {speed.backend: speed.turns_per_second for speed in report.encoding}
    for one, other in (("onnx fp32", "torch"), ("onnx int8", "onnx fp32"), ("torch training", "torch")):
        if one in rate and other in rate:
            lines.append(f"  {one} against {other}: {rate[one] / rate[other]:.2f} times the turns a second")
    peak = report.torch_gflops or report.numpy_gflops
    for speed in report.encoding:
        if speed.gflops is not None:
            lines.append(f"  {speed.backend}: {100 * speed.gflops / peak:.0f} % of the machine's matrix product")
    return lines


def _packing(report: Report) -> list[str]:
    rows = [("turns", "add all", "first build", "cached p50", "p95", "add one + build p50", "p95", "tokens")]
    for speed in report.packing:
        cached, grown = _pair(speed.cached), _pair(speed.grown)
        rows.append((f"{speed.turns:,}", _time(speed.append), _time(speed.first), *cached, *grown, f"{speed.tokens:,}"))
    return [f"build_context, scorer {report.scorer}, budget {report.budget:,}", *_table(rows)]


def _solver(solver: SolverSpeed) -> list[str]:
    rows = [("policy", "p50", "p95", "share of the optimum")]
    for speed in solver.policies:
        rows.append((speed.policy, *_pair(speed.times), f"{100 * speed.share_of_optimum:.3f} %"))
    rows.append(("dynamic program", _time(solver.exact_seconds), "", "100.000 %"))
    proof = f"{solver.method}, proven gap {100 * solver.gap:.2g} %"
    return [f"packing {solver.items:,} items into {solver.budget:,} tokens ({proof})", *_table(rows)]


def _encoding(report: Report) -> list[str]:
    rows = [("encoder", "turns/s", "tokens/s", "GF/s")]
    for speed in report.encoding:
        gflops = f"{speed.gflops:.1f}" if speed.gflops is not None else "-"
        rows.append((speed.backend, f"{speed.turns_per_second:.1f}", f"{speed.tokens_per_second:,.0f}", gflops))
    rows.append(("matrix product, numpy", "", "", f"{report.numpy_gflops:.1f}"))
    if report.torch_gflops is not None:
        rows.append(("matrix product, torch", "", "", f"{report.torch_gflops:.1f}"))
    lines = ["encoding" if report.encoding else "encoding: give --export FOLDER", *_table(rows)]
    if report.padding_sorted is not None and report.padding_unsorted is not None:
        lines.append(
            f"  padding: {100 * report.padding_sorted:.1f} % in batches sorted by length, "
            f"{100 * report.padding_unsorted:.1f} % in batches of 32 as they come"
        )
    return lines


def _steps(report: Report) -> list[str]:
    if not report.steps:
        return []
    rows = [("reader tokens", "questions", "read", "p50", "p95", "peak memory")]
    for speed in report.steps:
        numbers = (f"{speed.questions}", f"{speed.read}", *_pair(speed.times), f"{speed.peak_mib:,.0f} MiB")
        rows.append((f"{speed.reader_tokens:,}" if speed.reader_tokens else "none", *numbers))
    return ["", "a training step over cached vectors (memory: the process's peak so far)", *_table(rows)]


def _pair(times: Times) -> tuple[str, str]:
    return _time(times.p50), _time(times.p95)


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines: list[str] = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from None
