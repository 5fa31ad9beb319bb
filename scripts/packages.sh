#!/usr/bin/env bash
# Installs the Debian packages of missing programs, libraries and Python modules, as root or
# with sudo.
#
#   packages.sh build   for `make build`: a C compiler
#   packages.sh test    also for `make test`
#   packages.sh all     also for `make test-all` and for the tools in Python
#   packages.sh report  also for `make prior-report`
#   packages.sh photographs  also for `make restore-photographs`
#   packages.sh release also for `make release`
#   packages.sh emulation also for the archive for arm64 in `make release-test`
#   packages.sh deploy  also for `make deploy-test`
#
# The script checks for programs, libraries and modules, not for packages: other ways to install
# them work too. Exit code 1: something is missing and cannot be installed.
set -euo pipefail

python=${PYTHON:-/usr/bin/python3}
missing=()

program() { # program NAME PACKAGE...
	command -v "$1" >/dev/null || missing+=("${@:2}")
}

library() { # library NAME PACKAGE
	PATH=$PATH:/sbin ldconfig -p | grep -F "$1" >/dev/null || missing+=("$2")
}

module() { # module NAME PACKAGE
	"$python" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)' \
		"$1" 2>/dev/null || missing+=("$2")
}

case ${1:-} in
build | test | all | report | photographs | release | emulation | deploy) ;;
*)
	echo "usage: packages.sh build|test|all|report|photographs|release|emulation|deploy" >&2
	exit 2
	;;
esac

program gcc gcc libc6-dev
if [[ $1 == test || $1 == all ]]; then
	program git git
	program curl curl                  # a client of ONNX Runtime
	program protoc protobuf-compiler
	program "$python" python3
	module numpy python3-numpy
	module pandas python3-pandas
	module PIL python3-pil
	module pytest python3-pytest
fi
if [[ $1 == all ]]; then
	program chromium chromium          # contains a software Vulkan for WebGPU
	library libvulkan.so.1 libvulkan1
	program strace strace              # for attacks on stores
	module torch python3-torch
	module onnx python3-onnx
	module scipy python3-scipy
	module ensurepip python3-venv      # for the site
fi
if [[ $1 == report || $1 == photographs ]]; then
	program "$python" python3
	module ensurepip python3-venv      # for the environment of BM3D
	module numpy python3-numpy
	module PIL python3-pil
fi
if [[ $1 == report ]]; then
	module torch python3-torch
	module onnx python3-onnx
fi

if [[ $1 == deploy ]]; then
	program systemd-analyze systemd
	program promtool prometheus
fi
if [[ $1 == release ]]; then
	program ssh-keygen openssh-client  # signs in the test
	program git git
	program jq jq
	program "$python" python3
	module pip python3-pip             # downloads ONNX Runtime
	case $(uname -m) in
	x86_64) program aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;;
	aarch64) program x86_64-linux-gnu-gcc gcc-x86-64-linux-gnu libc6-dev-amd64-cross ;;
	esac
fi
if [[ $1 == emulation && $(uname -m) == x86_64 ]]; then
	program qemu-aarch64 qemu-user
fi

if ((${#missing[@]} == 0)); then
	exit 0
fi

as_root=()
if ((EUID != 0)); then
	as_root=(sudo -n)
fi
if ! command -v apt-get >/dev/null || { ((EUID != 0)) && ! sudo -n true 2>/dev/null; }; then
	echo "missing Debian packages: ${missing[*]}" >&2
	echo "install them (sudo apt-get install ${missing[*]}), then run the same command again" >&2
	exit 1
fi

echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${as_root[@]}" apt-get update -qq &&
	"${as_root[@]}" apt-get install -qq -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
	cat "$log" >&2
	echo "could not install ${missing[*]}; install them, then run the same command again" >&2
	exit 1
fi
