#!/usr/bin/env bash
# Trains a prior on a machine with a GPU and without network, from the folder of make prior-bundle:
#
#     bash train.sh SECONDS [flags of train_prior.py]
#
# It ends after SECONDS. In OUT (default ./out) lie, renewed every minute, so that an end at any moment leaves the last ones: prior.onnx in parts of at most
# 15 MB (cat OUT/prior.onnx.* > prior.onnx), train.log and loss.csv. compiled.tar.xz.* hold the compiled network: put together in this folder, they spare the
# next call of the same size the compilation. WORK (default /tmp/ddiff-prior) keeps the checkpoint: the same command trains further from it.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 2
OUT=${OUT:-out} WORK=${WORK:-/tmp/ddiff-prior} PYTHON=${PYTHON:-python3} DEVICE=${DEVICE:-cuda}
seconds=${1:?usage: bash train.sh SECONDS [flags of train_prior.py]}
shift
mkdir -p "$OUT" "$WORK/look"
export TORCHINDUCTOR_CACHE_DIR=$WORK/compiled TRITON_CACHE_DIR=$WORK/compiled/triton PYTHONUNBUFFERED=1
if [[ -f compiled.tar.xz ]]; then tar -xJf compiled.tar.xz -C "$WORK"; fi

parts() { # parts FILE NAME: OUT/NAME.00, OUT/NAME.01, each whole
	split -b 15M -d "$1" "$WORK/$2." && mv "$WORK/$2".[0-9][0-9] "$OUT/"
}

run() { "$PYTHON" tools/train_prior.py --device "$DEVICE" --seconds "$seconds" --pack prior-pack.zip "$@"; }

: >"$OUT/train.log" # before tail reads it
run --out "$WORK" "$@" >>"$OUT/train.log" 2>&1 &
training=$!
tail -f -n +1 --pid=$training "$OUT/train.log" &
while kill -0 $training 2>/dev/null; do
	sleep 2
	if [[ $WORK/checkpoint.pt -nt $WORK/look/checkpoint.pt ]]; then
		cp "$WORK/checkpoint.pt" "$WORK/look/" && run --out "$WORK/look" "$@" --export-only >/dev/null && parts "$WORK/look/prior.onnx" prior.onnx
		if [[ -f $WORK/loss.csv ]]; then cp "$WORK/loss.csv" "$OUT/"; fi
		if [[ -d $WORK/compiled && ! -f $WORK/compiled.tar.xz ]]; then # once
			tar -cf - -C "$WORK" compiled | xz -T0 -2 >"$WORK/compiled.tar.xz"
			if (($(stat -c %s "$WORK/compiled.tar.xz") < 30000000)); then parts "$WORK/compiled.tar.xz" compiled.tar.xz; fi
		fi
	fi
done
wait $training
code=$?
if ((code == 0)); then parts "$WORK/prior.onnx" prior.onnx && cp "$WORK/loss.csv" "$OUT/"; fi
tail -n 3 "$OUT/train.log"
ls -l "$OUT"
exit $code
