#!/usr/bin/env bash
# Degrades photographs, restores the files with ddiff restore, and compares with the truth and with classical methods. The files of each
# photograph stay in out/restore-photographs. With --no-bm3d, or where BM3D cannot be installed, its figures are missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-/usr/bin/python3}
out=$PWD/out/restore-photographs
if [[ " $* " != *" --no-bm3d "* ]]; then
	python=$(scripts/bm3d.sh) || {
		echo "could not install bm3d: its figures will be missing" >&2
		python=${PYTHON:-/usr/bin/python3}
	}
fi
rm -rf "$out"
mkdir -p "$out"
code=0
DDIFF_RESTORE_PHOTOGRAPHS=$out go -C cmd/ddiff test -count=1 -timeout 90m -run '^TestRestore(Photographs|Kinds|Clean)$' -v |
	awk '/^(photo|clean)=/ || /FAIL/ || /^ +restore_(photographs|kinds)_test/ { print; fflush() }' || code=$?
PYTHONDONTWRITEBYTECODE=1 "$python" -W ignore tools/classical_methods.py "$out" "$@"
exit "$code"
