#!/bin/sh
# Installs everything the project needs into this clone: uv into .tools, the workspace into .venv. Safe to run again; a second
# run with nothing changed takes a moment. Needs Python 3.11 or newer with venv, and nothing else.
set -eu
cd "$(dirname "$0")/.."
UV_VERSION=0.13.9

fail() { echo "gryvia: $1" >&2; exit 1; }

python=""
for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null 2>&1 &&
        "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python="$candidate"
        break
    fi
done
[ -n "$python" ] || fail "Python 3.11 or newer is needed; on Debian or Ubuntu run: apt-get install python3 python3-venv"
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    fail "this Python has no venv and pip; on Debian or Ubuntu run: apt-get install python3-venv"

if [ ! -x .tools/bin/uv ] || [ "$(.tools/bin/uv --version 2>/dev/null | cut -d' ' -f2)" != "$UV_VERSION" ]; then
    echo "installing uv $UV_VERSION into .tools"
    rm -rf .tools
    "$python" -m venv .tools || fail "could not make .tools; on Debian or Ubuntu run: apt-get install python3-venv"
    .tools/bin/python -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION" ||
        fail "could not install uv with pip (is the network there?)"
fi

stamp=.venv/.installed-from
state="$(cat uv.lock pyproject.toml libs/*/pyproject.toml services/*/pyproject.toml cli/pyproject.toml | cksum) $python"
if [ "$(cat "$stamp" 2>/dev/null || true)" != "$state" ]; then
    echo "installing the workspace into .venv"
    UV_PYTHON_DOWNLOADS=never .tools/bin/uv sync --quiet --frozen --all-packages --python "$python" ||
        fail "could not install the packages of uv.lock (is the network there?)"
    echo "$state" >"$stamp"
fi
