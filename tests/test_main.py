"""The `foveate` command: verbs are found, loaded late, and errors become one line with exit code 2."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from foveate import __version__
from foveate.cli import evaluate
from foveate.cli import main as cli
from foveate.core.errors import BudgetError, DataError

Plant = Callable[..., None]


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Plant:
    """Adds a verb `fake` with one flag that does what `run` does."""

    def add(run: Callable[[argparse.Namespace], int], **attributes: object) -> None:
        module = ModuleType("foveate.cli.fake")
        module.__dict__.update(run=run, configure=lambda parser: parser.add_argument("--flag"), **attributes)
        monkeypatch.setitem(sys.modules, "foveate.cli.fake", module)
        monkeypatch.setitem(cli.VERBS, "fake", "a verb for tests")

    return add


def raising(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def run(args: argparse.Namespace) -> int:
        raise error

    return run


def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert all(f"  {verb} " in shown for verb in cli.VERBS)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"foveate {__version__}\n"


def test_no_verb_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "verbs:" in capsys.readouterr().out


def test_unknown_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["trian"])
    assert stop.value.code == 2
    assert "'trian'" in capsys.readouterr().err


@pytest.mark.parametrize("verb", cli.VERBS)
def test_verb_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main([verb, "--help"])
    assert stop.value.code == 0
    assert f"usage: foveate {verb}" in capsys.readouterr().out


def test_arguments_reach_the_verb(plant: Plant) -> None:
    plant(lambda args: int(args.flag))
    assert cli.main(["fake", "--flag", "7"]) == 7


def test_unknown_argument_stops(plant: Plant) -> None:
    plant(lambda args: 0)
    with pytest.raises(SystemExit) as stop:
        cli.main(["fake", "--flog", "7"])
    assert stop.value.code == 2


def test_extra_arguments_where_the_verb_allows_them(plant: Plant) -> None:
    seen: list[str] = []
    plant(lambda args: seen.extend(args.extra) or 0, ALLOW_EXTRA=True)
    assert cli.main(["fake", "--flag", "7", "--optim.lr", "1e-4"]) == 0
    assert seen == ["--optim.lr", "1e-4"]


@pytest.mark.parametrize("error", [BudgetError(10, 42, "this\nconversation"), DataError("no such file:\n  x.json")])
def test_foveate_errors_are_one_line(error: Exception, plant: Plant, capsys: pytest.CaptureFixture[str]) -> None:
    plant(raising(error))
    assert cli.main(["fake"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == f"foveate: error: {' '.join(str(error).split())}\n"


def test_interrupt(plant: Plant, capsys: pytest.CaptureFixture[str]) -> None:
    plant(raising(KeyboardInterrupt()))
    assert cli.main(["fake"]) == 130
    assert capsys.readouterr().err == "foveate: interrupted\n"


def test_a_bug_keeps_its_traceback(plant: Plant) -> None:
    plant(raising(ZeroDivisionError("bug")))
    with pytest.raises(ZeroDivisionError):
        cli.main(["fake"])


def test_closed_pipe_is_quiet() -> None:
    code = (
        "import sys, types\n"
        "from foveate.cli import main as cli\n"
        "cli.VERBS['fake'] = ''\n"
        "m = sys.modules['foveate.cli.fake'] = types.ModuleType('fake')\n"
        "m.configure = lambda parser: None\n"
        "m.run = lambda args: print('x' * 1_000_000) or 0\n"
        "sys.exit(cli.main(['fake']))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 141
    assert said == b""


@pytest.mark.parametrize("part", sorted(evaluate.PARTS))
def test_a_part_of_a_verb_is_a_verb_of_its_own(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["evaluate", part, "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: foveate evaluate {part} ")
    assert evaluate.PARTS[part].split(",")[0][:40] in " ".join(shown.split())
