#!/usr/bin/env bash
# Packs a program as the Python package: wheel.sh PROGRAM DIR writes the wheel for the platform of the program to DIR.
set -euo pipefail
mkdir -p "$2"
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") out=$(cd "$2" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p bin/wheel
[[ $program -ef bin/wheel/ddiff ]] || cp "$program" bin/wheel/ddiff
[[ -d bin/wheel/build ]] || "${PYTHON:-/usr/bin/python3}" -m venv bin/wheel/build
bin/wheel/build/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$out" ./python
