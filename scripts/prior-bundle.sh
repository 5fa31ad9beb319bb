#!/usr/bin/env bash
# Writes what a machine with a GPU and without network needs to train the larger prior into OUT (default bin/prior-bundle): the photographs, held
# photographs and fonts as one file, the start weights, the tools and train.sh, below 58 MB. FONTS (default /usr/share/fonts) and PHOTOGRAPHS (default
# .cache/prior-photographs) name folders; the packages of Debian 13 of docs/prior.md have to lie unpacked there on Debian 12.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=${1:-bin/prior-bundle}
scripts/tuning-photographs.sh
rm -rf "$out"
mkdir -p "$out/tools"
PYTHONPATH=tools "${PYTHON:-python3}" -m prior_training.packed --out "$out/prior-pack.zip" --photographs "${PHOTOGRAPHS:-.cache/prior-photographs}" \
	--held .cache/tuning-photographs --fonts "${FONTS:-/usr/share/fonts}"
cp -r tools/prior_training tools/ddiff_torch tools/train_prior.py "$out/tools/"
find "$out" -name __pycache__ -prune -exec rm -r {} +
mv "$out/tools/prior_training/train.sh" "$out/"
cp priors/base.onnx "$out/"
echo "bytes=$(du -sb "$out" | cut -f 1) folder=$out"
