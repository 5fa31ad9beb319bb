#!/usr/bin/env bash
# Exports every architecture of tools/ddiff_export with random weights and compares the files in
# ONNX Runtime (bin/ddiff) with PyTorch. DDIFF_WEIGHTS names a folder with published files, which
# are exported and checked too. Run it through `make priors-test`, which builds the program. The
# last line is architectures=N max_abs=M fp16_psnr=P.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

program=$PWD/bin/ddiff
[[ -x $program ]] || {
	echo "bin/ddiff is missing; run: make build runtime" >&2
	exit 2
}
weights=()
if [[ -n ${DDIFF_WEIGHTS:-} ]]; then
	weights=(--weights "$(realpath -- "$DDIFF_WEIGHTS")")
fi
cd tools
exec env PYTHONDONTWRITEBYTECODE=1 "${PYTHON:-/usr/bin/python3}" -W ignore -m ddiff_export.selftest \
	--program "$program" "${weights[@]}" "$@"
