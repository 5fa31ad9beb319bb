#!/usr/bin/env bash
# Build steps of the worker's image. Dockerfile.worker runs the first three, each in its stage;
# the last runs all steps in a plain Debian root, without a container engine.
#
#   worker-image.sh build PROGRAM                 build the program; run it in the source tree
#   worker-image.sh library VARIANT PROGRAM DIR   install ONNX Runtime (cpu or cuda) into DIR
#   worker-image.sh system                        install packages, user and volumes; as root, in the image
#   worker-image.sh cpu ROOT                      run all steps for the CPU in the Debian root ROOT
set -euo pipefail

# The worker's user. A number lets a cluster verify that it is not root.
uid=65532
volumes=(/var/cache/ddiff)

usage() {
	sed -n '/^#   /s/^# *//p' "${BASH_SOURCE[0]}" >&2
	exit 2
}

# The caller sets GOFLAGS: the tree of another user needs -buildvcs=false.
build() { # build PROGRAM
	CGO_ENABLED=1 go build -ldflags='-s -w' -o "$1" ./cmd/ddiff
}

library() { # library VARIANT PROGRAM DIR
	local path
	path=$("$2" runtime install --ep "$1")
	mkdir -p "$3"
	cp "$(dirname "$path")"/* "$3"
	chmod -R u=rwX,go=rX "$3"
}

system() {
	export DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes
	apt-get update -qq
	# Certificates for TLS to store and queue; the C++ library for ONNX Runtime.
	apt-get install -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 ca-certificates libstdc++6 >/dev/null
	rm -rf /var/lib/apt/lists/*
	groupadd --gid $uid ddiff
	useradd -K UID_MAX=$uid --uid $uid --gid $uid --no-create-home --home-dir /var/cache/ddiff --shell /usr/sbin/nologin ddiff
	install -d -o $uid -g $uid -m 0755 "${volumes[@]}"
}

into_root() { # into_root ROOT
	local root=$1 work
	work=$(mktemp -d)
	# shellcheck disable=SC2064 # expand $work now
	trap "rm -rf '$work'" EXIT
	build "$work/ddiff"
	library cpu "$work/ddiff" "$root/opt/onnxruntime"
	install -D -m 0755 "${BASH_SOURCE[0]}" "$root/usr/local/bin/worker-image.sh"
	# The root needs this machine's name servers.
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	chroot "$root" /usr/local/bin/worker-image.sh system
	install -m 0755 "$work/ddiff" "$root/usr/local/bin/ddiff"
}

case "${1:-} $#" in
"build 2") build "$2" ;;
"library 4") library "$2" "$3" "$4" ;;
"system 1") system ;;
"cpu 2") into_root "$2" ;;
*) usage ;;
esac
