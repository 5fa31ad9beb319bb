#!/usr/bin/env bash
# Build steps of the images. Dockerfile.worker and Dockerfile.coordinator run the first four, each in its stage;
# the last two run all steps in a plain Debian root, without a container engine.
#
#   image.sh build DIR                               build the program and its tools; run it in the source tree
#   image.sh library VARIANT OPENVINO PROGRAM DIR    install ONNX Runtime (cpu or cuda) into DIR, and OpenVINO (yes or no)
#   image.sh documents BUILD DIR [VARIANT LIBRARY]   write licences and SBOM to DIR; run it in the source tree
#   image.sh system ROLE                             install packages, user and volumes of a worker or coordinator; as root, in the image
#   image.sh cpu ROOT                                run all steps of a worker for the CPU in the Debian root ROOT
#   image.sh coordinator ROOT                        run all steps of a coordinator
#
# BUILD is the folder of an earlier `build`; the steps with a ROOT use the folder DDIFF_IMAGE_BUILD, if it is set.
set -euo pipefail

# The user of both roles. A number lets a cluster verify that it is not root.
uid=65532
volumes=(/var/cache/ddiff)

usage() {
	sed -n '/^#   /s/^# *//p' "${BASH_SOURCE[0]}" >&2
	exit 2
}

# The caller sets GOFLAGS: the tree of another user needs -buildvcs=false. The bytes of the program depend on the commit
# and the compilers only.
build() { # build DIR
	mkdir -p "$1"
	CGO_ENABLED=1 CGO_CFLAGS=-O2 go build -trimpath -ldflags='-s -w -buildid=' -o "$1/ddiff" ./cmd/ddiff
	go -C internal/deploy build -trimpath -o "$(realpath "$1")/releaser" ./release
}

library() { # library VARIANT OPENVINO PROGRAM DIR
	local path client=()
	case $1 in cpu) client=(--client pip) ;; cuda) client=(--client maven) ;; esac
	path=$("$3" runtime install --ep "$1" "${client[@]}")
	mkdir -p "$4"
	copy "$(dirname "$path")" "$4"
	if [[ $1 == cpu && $2 == yes && $(uname -m) == x86_64 ]]; then
		path=$("$3" runtime install --ep openvino)
		mkdir -p "$4/openvino"
		copy "$(dirname "$path")" "$4/openvino"
	fi
	chmod -R u=rwX,go=rX "$4"
}

copy() { # copy FROM TO
	find "$1" -maxdepth 1 -type f -exec cp -t "$2" {} +
}

documents() { # documents BUILD DIR [VARIANT LIBRARY]
	local libraries=()
	if (($# == 4)); then
		libraries=("-$3" "$4")
		[[ ! -d $4/openvino ]] || libraries+=(-openvino "$4/openvino")
	fi
	mkdir -p "$2"
	"$1/releaser" documents -program "$1/ddiff" "${libraries[@]}" "$2"
	cp LICENSE "$2"
	chmod -R u=rwX,go=rX "$2"
}

system() { # system ROLE
	# Certificates for TLS to store and queue; the C++ library for ONNX Runtime.
	local packages=(ca-certificates)
	[[ $1 == coordinator ]] || packages+=(libstdc++6)
	export DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes
	apt-get update -qq
	apt-get install -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 "${packages[@]}" >/dev/null
	rm -rf /var/lib/apt/lists/*
	groupadd --gid $uid ddiff
	useradd -K UID_MAX=$uid --uid $uid --gid $uid --no-create-home --home-dir /var/cache/ddiff --shell /usr/sbin/nologin ddiff
	install -d -o $uid -g $uid -m 0755 "${volumes[@]}"
}

into_root() { # into_root ROLE ROOT
	local root=$2 work
	work=$(mktemp -d)
	# shellcheck disable=SC2064 # expand $work now
	trap "rm -rf '$work'" EXIT
	local built=${DDIFF_IMAGE_BUILD:-$work}
	[[ -x $built/ddiff ]] || build "$built"
	if [[ $1 == worker ]]; then
		# The user's own cache may have the library of another client, which this one would replace.
		XDG_CACHE_HOME=${XDG_CACHE_HOME:-$HOME/.cache}/ddiff/worker-image library cpu yes "$built/ddiff" "$root/usr/local/lib/ddiff"
		documents "$built" "$root/usr/local/share/doc/ddiff" cpu "$root/usr/local/lib/ddiff"
	else
		documents "$built" "$root/usr/local/share/doc/ddiff"
	fi
	install -D -m 0755 "${BASH_SOURCE[0]}" "$root/usr/local/bin/image.sh"
	# The root needs this machine's name servers.
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	TMPDIR=/tmp chroot "$root" /usr/local/bin/image.sh system "$1"
	install -m 0755 "$built/ddiff" "$root/usr/local/bin/ddiff"
	install -D -m 0644 priors/base.onnx "$root/usr/local/lib/ddiff/base.onnx"
}

case "${1:-} $#" in
"build 2") build "$2" ;;
"library 5") library "$2" "$3" "$4" "$5" ;;
"documents 3" | "documents 5") documents "${@:2}" ;;
"system 2") system "$2" ;;
"cpu 2") into_root worker "$2" ;;
"coordinator 2") into_root coordinator "$2" ;;
*) usage ;;
esac
