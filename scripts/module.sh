#!/usr/bin/env bash
# Gives the module the path that others import it by, as in: scripts/module.sh example.org/group/ddiff
# It rewrites the files of this checkout. Until the project has a host its path is ddiff, which nobody can fetch.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

path=${1:-}
if [[ ! $path =~ ^[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9._~-]+)+$ ]]; then
	echo "module.sh: '$path' is no path of a module; give host/owner/name, as in example.org/group/ddiff" >&2
	exit 2
fi
old=$(go list -m)
rooms='(api|cmd|coordinator|gpuworker|internal|manifest|restore|storage|telemetry)'
tracked() { git ls-files -z -- "$@"; }
# Generated messages name their package in a string with its length.
tracked '*.go' ':!*.pb.go' 'docs/new-*.md' | xargs -0 sed -Ei "s#(^|[^\\\\])\"$old/($rooms/|\"|$rooms\")#\1\"$path/\2#"
tracked .golangci.yml .ci/may-skip scripts/test.sh | xargs -0 sed -Ei "s#(^|[^A-Za-z0-9_/.}-])$old/$rooms#\1$path/\2#g; s#(pkg: )$old\$#\1$path#"
tracked '*go.mod' | xargs -0 sed -Ei "s#^module $old(/|\$)#module $path\1#; s#^(replace |\t)$old( v|  *=>)#\1$path\2#"
tracked '*.go' ':!*.pb.go' | xargs -0 gofmt -w
