#!/usr/bin/env bash
# Prints a Python interpreter that has the PyPI package bm3d: that of PYTHON, or one of .cache/bm3d, a virtual environment based on it, into
# which the script installs bm3d, with the last versions of NumPy and SciPy that are compatible with Debian's PyTorch. The licence of bm3d
# permits research only, so that the project does not depend on it. Exit code 1: the package cannot be installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-/usr/bin/python3}
environment=.cache/bm3d
if ! "$python" -c 'import bm3d' 2>/dev/null; then
	if ! "$environment/bin/python" -c 'import bm3d' 2>/dev/null; then
		echo "installing bm3d into $environment" >&2
		"$python" -m venv --clear --system-site-packages "$environment" >&2
		"$environment/bin/python" -m pip install --quiet --disable-pip-version-check 'bm3d==4.0.3' 'numpy<2' 'scipy<1.14' >&2
	fi
	python=$environment/bin/python
fi
echo "$python"
