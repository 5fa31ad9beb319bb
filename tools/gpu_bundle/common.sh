# Read by check.sh and network.sh: unpacks the bundle into WORK and finds the libraries of CUDA that pip installed beside PyTorch. OUT gets the results.
bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
WORK=${WORK:-${TMPDIR:-/tmp}/ddiff-gpu} OUT=${OUT:-$PWD/gpu-out} PYTHON=${PYTHON:-python3}
mkdir -p "$WORK" "$OUT"
for part in python program; do
	[ -d "$WORK/$part" ] || [ ! -f "$bundle/$part.tar.xz" ] || "$PYTHON" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$bundle/$part.tar.xz" "$WORK/$part"
done
libraries=$("$PYTHON" -c 'import glob, sys; print(":".join(g for s in sys.path for g in glob.glob(s + "/nvidia/*/lib")))')
export LD_LIBRARY_PATH=$libraries:${LD_LIBRARY_PATH:-} PYTHONPATH=$WORK/python${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
