#!/usr/bin/env bash
# Builds the program for macOS on arm64 on Linux: macos.sh FILE. The compiler, its linker, which signs, and macOS's C headers and libraries are those of
# the PyPI package ziglang. Of Apple's frameworks the linker needs only names: those that Go's sources import. `make wheel ARCH=macos` uses it.
set -euo pipefail
file=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$PWD/.cache/macos
mkdir -p "$work/include/mach"
[[ -d $work/zig ]] || "${PYTHON:-/usr/bin/python3}" -m venv "$work/zig"
"$work/zig/bin/pip" install --quiet --disable-pip-version-check ziglang==0.17.1

grep -rhoE 'cgo_import_dynamic [^ ]+ [^ ]+ "/(System|usr/lib/libresolv)[^"]+"' --include='*.go' "$(go env GOROOT)/src" | sort -u |
	awk -v work="$work" '{ gsub(/"/, "", $4); symbols[$4] = symbols[$4] (symbols[$4] ? ", _" : "_") $3 }
		END { for (path in symbols) {
			n = split(path, part, "/"); name = part[n]; dir = work
			if (name ~ /dylib/) sub(/\..*/, "", name); else dir = work "/" name ".framework"
			system("mkdir -p \"" dir "\""); out = dir "/" name ".tbd"
			printf "--- !tapi-tbd\ntbd-version: 4\ntargets: [ arm64-macos ]\ninstall-name: %s\nexports:\n  - targets: [ arm64-macos ]\n    symbols: [ %s ]\n...\n", path, symbols[path] >out
		} }'
# The one header that ziglang lacks, for github.com/prometheus/client_golang.
cat >"$work/include/mach/mach_vm.h" <<'END'
#include <mach/mach_types.h>
#include <mach/vm_region.h>
kern_return_t mach_vm_region(vm_map_read_t, mach_vm_address_t *, mach_vm_size_t *, vm_region_flavor_t, vm_region_info_t, mach_msg_type_number_t *, mach_port_t *);
END
# macOS 12 is the oldest of Go 1.26.
cat >"$work/cc" <<END
#!/bin/sh
exec "$work/zig/bin/python" -m ziglang cc -target aarch64-macos.12.0 -idirafter "$work/include" -F"$work" -L"$work" "\$@"
END
chmod +x "$work/cc"
CGO_ENABLED=1 GOOS=darwin GOARCH=arm64 CC="'$work/cc'" go build -ldflags='-s -w -buildid=' -o "$file" ./cmd/ddiff
rm -f ./-.o
