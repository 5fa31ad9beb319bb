#!/usr/bin/env bash
# Compares the bundled prior with BM3D, and more on request: see tools/prior_report.py, which gets the arguments.
# BM3D is the package bm3d of PyPI. Where the interpreter lacks it, it is installed into .cache/prior-report, an
# environment on top of that interpreter, with the last NumPy and SciPy that go with Debian's PyTorch.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-/usr/bin/python3}
environment=.cache/prior-report
if [[ " $* " != *" --no-bm3d "* ]] && ! "$python" -c 'import bm3d' 2>/dev/null; then
	if ! "$environment/bin/python" -c 'import bm3d' 2>/dev/null; then
		echo "installing bm3d into $environment" >&2
		"$python" -m venv --clear --system-site-packages "$environment"
		"$environment/bin/python" -m pip install --quiet --disable-pip-version-check 'bm3d==4.0.3' 'numpy<2' 'scipy<1.14' || {
			echo "could not install bm3d; install it for $python, or leave it out: make prior-report PRIOR_REPORT=--no-bm3d" >&2
			exit 1
		}
	fi
	python=$environment/bin/python
fi
exec env PYTHONDONTWRITEBYTECODE=1 "$python" -W ignore tools/prior_report.py "$@"
