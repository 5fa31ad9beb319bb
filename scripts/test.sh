#!/usr/bin/env bash
# Runs checks and tests, prints each package as it ends, continues after a failure, and prints the slowest tests and the skipped
# tests with their reasons.
#
#   test.sh        gofmt and vet, all tests that are not long, a small cluster, the Python package
#   test.sh all    the rest: the linter, the long tests, the race detector, browsers, PyTorch, OpenVINO, the site, figures of the host
#
# A long test says so itself: it skips with testing.Short. With CI=true a test must not skip in both, unless .ci/may-skip lists it.
# Run the script through `make test` or `make test-all`, which install its needs.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

suite=${1:-quick}
root=$PWD
python=${PYTHON:-/usr/bin/python3}
# The JUnit reports of the last runs stay: test-report.awk prints the slowest tests of any of them.
kept=$root/.cache/test-reports
ls -d "$kept"/*/ 2>/dev/null | sort | head -n -9 | xargs -r rm -r
reports=$kept/$(date -u +%Y%m%dT%H%M%S)-$suite
mkdir -p "$reports"
# Vet runs once, in a stage of its own or in the linter.
export GOFLAGS="${GOFLAGS:-} -vet=off"

stage() { # stage NAME COMMAND...
	local name=$1 begin=$SECONDS result=passed TIMEFORMAT="== $1: processor time %U s, and %S s in the kernel"
	shift
	echo "== $name"
	if ! time "$@" </dev/null; then
		echo " [$name]" >>"$reports/failed"
		result=FAILED
	fi
	echo "== $name: $result in $((SECONDS - begin)) s"
}

beside() { # beside FUNCTION...; runs functions beside each other: the processes of one wait while those of the other compute
	local f lanes=()
	for f in "$@"; do
		"$f" &
		lanes+=($!)
	done
	# The shell starts them with interrupts ignored, and cannot act on a signal while it waits for a program.
	trap 'trap - INT TERM; kill 0' INT TERM
	for f in "${lanes[@]}"; do
		wait "$f" || echo " [a lane]" >>"$reports/failed"
	done
	trap - INT TERM
}

gotests() { # gotests REPORT GO-TEST-ARGUMENTS...
	"$root/${GOTESTSUM:?run this script through make}" --format pkgname --format-hide-empty-pkg --hide-summary skipped \
		--junitfile "$reports/$1.xml" -- -timeout 30m "${@:2}"
}

uncached() ( # uncached FOLDER REPORT GO-TEST-ARGUMENTS...; Go's test cache does not track what git and go print, and the programs that tests build
	cd "$1" && gotests "$2" -count=1 "${@:3}"
)

pythontests() { # pythontests REPORT FOLDER; pytest itself keeps the files of its last three runs, 600 MB each
	local files result
	files=$(mktemp -d)
	PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -q -rfE -p no:cacheprovider --basetemp="$files" --junitxml="$reports/$1.xml" "$2" | sed -u ''
	result=$?
	rm -r "$files"
	return $result
}

python_package() ( # python_package REPORT; the package with the built program, without what pip installs
	work=$(mktemp -d)
	trap 'rm -r "$work"' EXIT
	mkdir -p "$work/ddiff/bin" "$work/tests"
	cp -r python/src/ddiff docs/python.md "$work"
	cp python/tests/*.py "$work/tests"
	ln -s "$root/bin/ddiff" "$work/ddiff/bin/ddiff"
	go build -o "$work/nats-server" github.com/nats-io/nats-server/v2 || return
	DDIFF_ONNXRUNTIME=$(bin/ddiff runtime where) || return
	export DDIFF_ONNXRUNTIME NATS_SERVER=$work/nats-server PYTHONPATH=$work
	"$python" - "$work" <<-'END' || return # what pip writes beside a package
		import pathlib, sys, tomllib
		project = tomllib.loads(pathlib.Path("python/pyproject.toml").read_text())["project"]
		lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}"]
		lines += [f'Requires-Dist: {r}; extra == "{extra}"' for extra, wanted in project["optional-dependencies"].items() for r in sorted(wanted)]
		folder = pathlib.Path(sys.argv[1]) / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
		folder.mkdir()
		(folder / "METADATA").write_text("\n".join(lines) + "\n")
	END
	cd "$work" && pythontests "$1" tests
)

# The quick tests.

vet() {
	local bad=0 unformatted
	unformatted=$(gofmt -l .)
	test -z "$unformatted" || { printf 'not formatted by gofmt:\n%s\n' "$unformatted"; bad=1; }
	go vet ./... && return $bad
}

# Tests of what uses the queue wait for servers and intervals: twelve at a time are as fast as two on two cores. The others compute.
waiting() {
	go list -f '{{$p := .ImportPath}}{{if eq $p "ddiff/internal/queue"}}{{$p}}{{end}}{{range .Deps}}{{if eq . "ddiff/internal/queue"}}{{$p}}{{end}}{{end}}' $packages
}

quick_waiting() {
	stage "packages that use the queue" gotests waiting -short -parallel 12 $(waiting)
}

quick_computing() {
	stage "other packages" gotests computing -short -p 1 $(grep -vxF "$(waiting)" <<<"$packages")
}

quick_processes() {
	stage "vet" vet
	stage "repository rules" uncached . repository -short ./internal/repository
	stage "dashboards and alerts" uncached internal/telemetrytest views .
	stage "compose, units and releases" uncached internal/deploy deploy -short ./...
	stage "a cluster with a kill" uncached internal/testbed testbed -short ./...
	DDIFF_SHORT=1 stage "Python package" python_package python-short
}

# The rest.

# The race detector watches no codecs and no drawing in libraries, which have no goroutines, and which it slows down ten times: reports of campaigns
# would take most of its time.
race=(-race)
for package in image/... compress/... github.com/klauspost/compress/{flate,internal/le} golang.org/x/image/... github.com/golang/freetype/... \
	ddiff/internal/restore/raster/...; do
	race+=("-gcflags=$package=-race=false")
done

# concurrent lists the packages that start goroutines, but for the programs, which their tests start as processes.
concurrent() {
	go list -f '{{.ImportPath}} {{.Dir}}' $packages | while read -r package dir; do
		! find "$dir" -maxdepth 1 -name '*.go' ! -name '*_test.go' -exec grep -qE '^\s*go [a-zA-Z(]|\.Go\(' {} + || echo "$package"
	done | grep -v '^ddiff/cmd/ddiff$'
}

racing_program() { # some tests of the command line, with the race detector in the program
	GOFLAGS="$GOFLAGS ${race[*]:1}" DDIFF_RACE=1 gotests program-race -run '^Test(Kill|CancelFreesHungWorker)$' ./cmd/ddiff
}

all_packages() {
	local racing computing
	racing=$(concurrent)
	computing=$(grep -E '^ddiff/(restore|internal/(restore|report))' <<<"$racing")
	racing=$(grep -vxF "$computing" <<<"$racing")
	stage "lint" make lint
	stage "packages with goroutines, with the race detector" gotests race "${race[@]}" -parallel 12 $racing
	# Long tests of packages that compute take many times as long with the detector, and run without it, one package at a time: each uses
	# all cores.
	stage "packages that compute, with the race detector" gotests race-short "${race[@]}" -short $computing
	stage "packages without the race detector" gotests plain -p 1 $(grep -vxF "$racing" <<<"$packages" | grep -v '^ddiff/cmd/ddiff$')
	stage "exported priors" scripts/priors-test.sh
}

all_processes() {
	stage "the program" gotests program ./cmd/ddiff
	stage "the program, with the race detector" racing_program
	stage "clusters of processes" uncached internal/testbed testbed -p 1 ./...
	stage "repository rules" uncached . repository ./internal/repository
	stage "Python package" python_package python-package
	stage "Python tools" pythontests python tools/tests
	stage "the site" scripts/docs.sh
}

if ! packages=$(go list ./... | grep -v '^ddiff/internal/repository$'); then
	echo "cannot list the packages" >&2
	exit 1
fi
enforce=0
case $suite in
quick)
	beside quick_waiting quick_computing quick_processes
	;;
all)
	# `make runtime` installs OpenVINO only together with ONNX Runtime, and without it its tests skip.
	[[ ${CI:-} != true ]] || bin/ddiff runtime install --ep openvino >/dev/null || echo "no OpenVINO"
	beside all_packages all_processes
	stage "figures of the host" make bench-host
	[[ ${CI:-} != true ]] || enforce=1
	;;
esac
both=$(printf '%s\n' "$kept"/*-quick "$reports" | tail -n 2 | uniq)
stage "slowest and skipped tests" awk -v list=.ci/may-skip -v enforce="$enforce" -f scripts/test-report.awk $(ls $(printf '%s/*.xml ' $both))

echo
if [[ -e $reports/failed ]]; then
	echo "FAILED after $SECONDS s:$(tr -d '\n' <"$reports/failed")"
	exit 1
fi
echo "everything passed in $SECONDS s"
