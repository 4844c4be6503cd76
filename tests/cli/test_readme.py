"""What the README and the errors tell a user to install is what is needed."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from foveate.core.errors import MissingExtraError
from foveate.core.tokens import load_counter

ROOT = Path(__file__).resolve().parents[2]


def test_the_extra_for_tiktoken_is_named_and_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(MissingExtraError) as caught:
        load_counter("tiktoken:o200k_base")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert caught.value.extra == "tiktoken"
    assert [re.split("[>=]", package)[0] for package in extras["tiktoken"]] == ["tiktoken"]
    assert "tiktoken" in extras["all"][0]


def test_the_first_example_runs_after_the_install_line_beside_it() -> None:
    before, _, rest = (ROOT / "README.md").read_text(encoding="utf-8").partition("```python\n")
    assert "pip install 'foveate[tiktoken,onnx]'" in before
    example = rest.partition("```")[0]
    assert '"tiktoken:o200k_base"' in example
    exec(example.replace("tiktoken:o200k_base", "cautious"), {})  # its rank file may be out of reach here
