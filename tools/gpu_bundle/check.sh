#!/usr/bin/env bash
# Runs doctor and bench of the bundled program on a GPU, at most seven minutes: the network alone, whole campaigns, in both precisions. The texts go to
# OUT/doctor.log and OUT/bench.log. DEVICE, PRECISIONS and BENCH change what is timed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cp "$WORK"/python/onnxruntime/capi/libonnxruntime_providers_{cuda,shared}.so "$WORK/program/" 2>/dev/null || true
export DDIFF_ONNXRUNTIME=${DDIFF_ONNXRUNTIME:-$WORK/program/libonnxruntime.so}
"$WORK/program/ddiff" doctor 2>&1 | tee "$OUT/doctor.log" || true
status=0
for precision in ${PRECISIONS:-float16 float32}; do
	# shellcheck disable=SC2086 # BENCH has several words
	timeout 200 "$WORK/program/ddiff" bench --device "${DEVICE:-cuda:0}" --images "$bundle/images" --task super_resolution --rounds 1 --solver \
		--precision "$precision" ${BENCH:---batch 1,4,16 --items 16 --steps 40} 2>&1 | tee -a "$OUT/bench.log" || status=$?
done
exit $status
