#!/usr/bin/env bash
# Runs every check and every test of the project, goes on after a failure, and ends with the
# skipped tests and their reasons. With CI=true a test that .ci/may-skip does not list must
# not skip. Run it through `make test`, which installs what it needs.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-/usr/bin/python3}
reports=.cache/test-reports
rm -rf "$reports"
mkdir -p "$reports"

# The first compute, which the race detector makes many times slower, and start at most one
# goroutine; cmd/ddiff runs them all under the detector, on small images. Those of internal
# start programs, which the detector does not see.
without_race='^ddiff/(coordinator/report|restore|restore/(gpucheck|metric|noise|operator|prior|prior/.*|raster|solver)|internal/(chaos|clusterdemo|clustertest|scale))$'

failed=()

stage() { # stage NAME COMMAND...
	local name=$1 begin=$SECONDS
	shift
	echo
	echo "== $name"
	if "$@" </dev/null; then
		echo "== $name: passed in $((SECONDS - begin)) s"
	else
		failed+=("$name")
		echo "== $name: FAILED after $((SECONDS - begin)) s"
	fi
}

gotests() { # gotests REPORT GO-TEST-ARGUMENTS...
	"${GOTESTSUM:-gotestsum}" --format pkgname --format-hide-empty-pkg --hide-summary skipped \
		--junitfile "$reports/$1.xml" -- -timeout 30m "${@:2}"
}

if ! packages=$(go list ./... | grep -v '^ddiff/internal/repository$'); then
	echo "the packages cannot be listed" >&2
	exit 1
fi
mapfile -t racing < <(grep -Ev "$without_race" <<<"$packages")
mapfile -t plain < <(grep -E "$without_race" <<<"$packages")

stage lint make lint
# Not from the cache: Go does not see that these tests depend on what git and go tell them.
stage "the repository's own rules" gotests repository -count=1 ./internal/repository
stage "Go, with the race detector" gotests race -race "${racing[@]}"
# One package at a time: each uses all cores.
stage "Go, without" gotests plain -p 1 "${plain[@]}"
stage Python env PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -p no:cacheprovider \
	--junitxml="$reports/python.xml" tools/tests
stage "exported priors" scripts/priors-test.sh

enforce=()
if [[ ${CI:-} == true ]]; then
	enforce=(-enforce)
fi
stage "skipped tests" go run ./internal/repository/skips "${enforce[@]}" -may-skip .ci/may-skip "$reports"/*.xml

echo
if ((${#failed[@]} > 0)); then
	printf 'FAILED after %d s:' "$SECONDS"
	printf ' [%s]' "${failed[@]}"
	echo
	exit 1
fi
echo "everything passed in $SECONDS s"
