#!/usr/bin/env bash
# Exports small networks with the current diffusers and PyTorch in an environment of its own, and
# compares each, as ddiff rewrites it, with its file. FOREIGN_ENV names the environment's folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

env=${FOREIGN_ENV:-$PWD/bin/foreign-priors}
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT

if [[ ! -x $env/bin/python3 ]]; then
	python3 -m venv "$env"
fi
"$env/bin/python3" -m pip install --quiet torch diffusers onnx onnxscript
"$env/bin/python3" tools/foreign_priors.py "$files"
DDIFF_FOREIGN=$files go test -count=1 -run TestForeignNetworks -v ./internal/restore/prior
