#!/usr/bin/env bash
# Builds every architecture of tools/ddiff_export with random weights, exports it, and has
# bin/ddiff check it in ONNX Runtime against PyTorch. With DDIFF_WEIGHTS, the published files in
# that folder are treated in the same way. Run it through `make priors-test`, which builds what
# it needs. The last line is architectures=N max_abs=M fp16_psnr=P.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

program=$PWD/bin/ddiff
[[ -x $program ]] || {
	echo "there is no bin/ddiff; run: make build runtime" >&2
	exit 2
}
weights=()
if [[ -n ${DDIFF_WEIGHTS:-} ]]; then
	weights=(--weights "$(realpath -- "$DDIFF_WEIGHTS")")
fi
cd tools
exec env PYTHONDONTWRITEBYTECODE=1 "${PYTHON:-/usr/bin/python3}" -W ignore -m ddiff_export.selftest \
	--program "$program" "${weights[@]}" "$@"
