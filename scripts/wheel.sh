#!/usr/bin/env bash
# Packs a program as the Python package: wheel.sh PROGRAM DIR [LICENCES] writes the wheel for the platform of the program to DIR. LICENCES is a folder with the
# texts of what the program contains, which a release must have.
set -euo pipefail
mkdir -p "$2"
licences=${3:+$(cd "$3" && pwd)}
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") out=$(cd "$2" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rm -rf bin/wheel/licenses
mkdir -p bin/wheel/licenses
cp LICENSE bin/wheel/licenses
[[ -z $licences ]] || cp -r "$licences"/. bin/wheel/licenses
[[ $program -ef bin/wheel/ddiff ]] || cp "$program" bin/wheel/ddiff
[[ -d bin/wheel/build ]] || "${PYTHON:-/usr/bin/python3}" -m venv bin/wheel/build
bin/wheel/build/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$out" ./python
