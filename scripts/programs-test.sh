#!/usr/bin/env bash
# Runs a small campaign, writes its table, and reads table, pictures and summary with the packages of docs/scripting.md, which it
# installs into .cache/programs. DDIFF_PROGRAMS names an interpreter that has them. Run it through
# `make programs-test`, which builds the program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${DDIFF_PROGRAMS:-}
if [[ -z $python ]]; then
	python=.cache/programs/bin/python
	if ! "$python" -c 'import datasets, mlflow, pandas, pytest, wandb' 2>/dev/null; then
		echo "installing pandas, datasets, wandb and mlflow into .cache/programs" >&2
		"${PYTHON:-/usr/bin/python3}" -m venv --clear .cache/programs
		"$python" -m pip install --quiet --disable-pip-version-check \
			pandas==3.1.1 pyarrow==26.0.1 datasets==5.2.0 pillow wandb==0.31.0 mlflow-skinny==3.17.2 pytest || {
			echo "could not install the packages; name an interpreter that has them: DDIFF_PROGRAMS=PYTHON make programs-test" >&2
			exit 1
		}
	fi
fi

exports=$(mktemp -d)
trap 'rm -rf "$exports"' EXIT
bin/ddiff run examples/images/coffee.png examples/images/rocket.png --task hdr --set gamma0=4,8 --runs 2 --size 32 --steps 5 --quiet \
	--out "$exports/out/demo"
bin/ddiff report "$exports/out/demo" --format parquet --out "$exports/demo.parquet"
DDIFF_EXPORTS=$exports PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -p no:cacheprovider --noconftest tools/tests/test_programs.py
