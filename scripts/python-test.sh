#!/usr/bin/env bash
# Installs the wheel of `make wheel` in a fresh virtual environment, and runs the tests and notebooks of python/ away from the checkout. The last line
# counts them. Run it through `make python-test`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-/usr/bin/python3}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check "$(echo "$PWD"/bin/wheel/ddiff_restore-*.whl)[test]"
cp -r python/tests python/notebooks docs/python.md "$work"
cp examples/images/astronaut.png "$work/notebooks"
cd "$work"
# An empty home: no ONNX Runtime of the user's cache, nothing but what pip brought.
mkdir user
(cd "$OLDPWD" && go build -o "$work/nats-server" github.com/nats-io/nats-server/v2)
export NATS_SERVER=$work/nats-server
status=0
env -u DDIFF_ONNXRUNTIME -u DDIFF_OPENVINO -u PYTHONPATH HOME="$work/user" XDG_CACHE_HOME="$work/user/cache" PATH="$work/venv/bin:$PATH" \
	venv/bin/python -m pytest -q -p no:cacheprovider --junitxml report.xml --ignore tests/pytorch tests || status=$?
# PyTorch and ONNX are Debian's: those of PyPI are some gigabytes. They need Debian's NumPy and Protocol Buffers; other packages stay pip's.
torch=$("${PYTHON:-/usr/bin/python3}" -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parent.parent)')
mkdir debian
ln -s "$torch"/{numpy,google,onnx} debian
echo "$torch" >"$(venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/debian.pth"
env -u DDIFF_ONNXRUNTIME -u DDIFF_OPENVINO PYTHONPATH="$work/debian" HOME="$work/user" XDG_CACHE_HOME="$work/user/cache" PATH="$work/venv/bin:$PATH" \
	venv/bin/python -m pytest -q -p no:cacheprovider --junitxml torch.xml tests/pytorch || status=$?
venv/bin/python - <<'END'
import xml.etree.ElementTree as xml
from pathlib import Path
cases = [c for f in ("report.xml", "torch.xml") for c in xml.parse(f).iter("testcase")]
good = [c for c in cases if not list(c)]
books = [c for c in cases if c.get("name").startswith("test_notebook")]
notebooks = len(list(Path("notebooks").glob("*.ipynb")))
print(f"tests={len(cases)} passed={len(good)} notebooks={notebooks} executed={len([c for c in books if c in good])}")
END
exit $status
