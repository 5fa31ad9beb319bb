#!/usr/bin/env bash
# Compares the bundled prior with BM3D; passes its arguments to tools/prior_report.py, which describes them.
# If the interpreter lacks the PyPI package bm3d, the script installs it into .cache/prior-report, a virtual environment
# based on the interpreter, with the last versions of NumPy and SciPy that are compatible with Debian's PyTorch.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-/usr/bin/python3}
environment=.cache/prior-report
if [[ " $* " != *" --no-bm3d "* ]] && ! "$python" -c 'import bm3d' 2>/dev/null; then
	if ! "$environment/bin/python" -c 'import bm3d' 2>/dev/null; then
		echo "installing bm3d into $environment" >&2
		"$python" -m venv --clear --system-site-packages "$environment"
		"$environment/bin/python" -m pip install --quiet --disable-pip-version-check 'bm3d==4.0.3' 'numpy<2' 'scipy<1.14' || {
			echo "could not install bm3d; install it for $python, or run without it: make prior-report PRIOR_REPORT=--no-bm3d" >&2
			exit 1
		}
	fi
	python=$environment/bin/python
fi
exec env PYTHONDONTWRITEBYTECODE=1 "$python" -W ignore tools/prior_report.py "$@"
