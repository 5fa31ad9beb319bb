#!/usr/bin/env bash
# Times networks and steps with ONNX Runtime and PyTorch on a GPU: bash network.sh [--until SECONDS] [--only WORD]. See network.py.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
nvidia-smi --query-gpu=name,driver_version,memory.used --format=csv,noheader || true
"$PYTHON" "$bundle/network.py" --prior "$bundle/prior.onnx" --graphs "$bundle/graphs" --out "$OUT" "$@" 2>&1 | tee "$OUT/network.log"
