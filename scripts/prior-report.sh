#!/usr/bin/env bash
# Compares the bundled prior with BM3D; passes its arguments to tools/prior_report.py, which describes them.
# scripts/bm3d.sh installs BM3D.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-/usr/bin/python3}
if [[ " $* " != *" --no-bm3d "* ]]; then
	python=$(scripts/bm3d.sh) || {
		echo "could not install bm3d; install it for ${PYTHON:-/usr/bin/python3}, or run without it: make prior-report PRIOR_REPORT=--no-bm3d" >&2
		exit 1
	}
fi
exec env PYTHONDONTWRITEBYTECODE=1 "$python" -W ignore tools/prior_report.py "$@"
