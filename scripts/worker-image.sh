#!/usr/bin/env bash
# The steps that make a worker's image. Dockerfile.worker runs the first three, each in its
# stage; the last takes them all in a plain Debian root, without a container engine.
#
#   worker-image.sh build PROGRAM                 build the program; in the source tree
#   worker-image.sh library VARIANT PROGRAM DIR   put ONNX Runtime (cpu or cuda) into DIR
#   worker-image.sh system                        packages, user and volumes; as root, in the image
#   worker-image.sh cpu ROOT                      all of it for the CPU, into the Debian root ROOT
set -euo pipefail

# The user that the worker runs as. A number, so that a cluster can see that it is not root.
uid=65532
volumes=(/var/cache/ddiff)

usage() {
	sed -n '/^#   /s/^# *//p' "${BASH_SOURCE[0]}" >&2
	exit 2
}

# GOFLAGS is the caller's: a tree that belongs to somebody else needs -buildvcs=false.
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
	# Certificates for TLS to storage and queue; ONNX Runtime is C++.
	apt-get install -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 ca-certificates libstdc++6 >/dev/null
	rm -rf /var/lib/apt/lists/*
	groupadd --gid $uid ddiff
	useradd -K UID_MAX=$uid --uid $uid --gid $uid --no-create-home --home-dir /var/cache/ddiff --shell /usr/sbin/nologin ddiff
	install -d -o $uid -g $uid -m 0755 "${volumes[@]}"
}

into_root() { # into_root ROOT
	local root=$1 work
	work=$(mktemp -d)
	# shellcheck disable=SC2064 # the directory of now
	trap "rm -rf '$work'" EXIT
	build "$work/ddiff"
	library cpu "$work/ddiff" "$root/opt/onnxruntime"
	install -D -m 0755 "${BASH_SOURCE[0]}" "$root/usr/local/bin/worker-image.sh"
	# The root reaches the network the way this machine does.
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
