#!/usr/bin/env bash
# Runs the checks and tests of the project, continues after a failure, and prints the slowest
# tests and the skipped tests with their reasons.
#
#   test.sh        every check and every test
#   test.sh quick  lint and the tests that need no compute
#
# With CI=true a test that .ci/may-skip does not list must not skip. Run it through `make test` or
# `make check`, which install its needs.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-/usr/bin/python3}
# The JUnit reports of the last runs stay: test-report.awk prints the slowest tests of any of them.
ls -d "$PWD"/.cache/test-reports/*/ 2>/dev/null | sort | head -n -9 | xargs -r rm -r
reports=$PWD/.cache/test-reports/$(date -u +%Y%m%dT%H%M%S)
mkdir -p "$reports"
# The lint stage runs vet, once.
export GOFLAGS="${GOFLAGS:-} -vet=off"

# These packages compute, which the race detector slows down many times; the tests of cmd/ddiff start programs, which it does
# not see. Tests of goroutines, and some runs of a program with the detector, have a stage of their own; `make race` runs all
# tests of cmd/ddiff with such a program.
compute='^ddiff/(coordinator/report|coordinator/report/chart|restore|restore/(check|job|method|metric|noise|noiselevel|onnx|onnx/(infer|modelfile)|operator|operator/.*|picture|prior|prior/.*|raster|solver))$'
# These need ONNX Runtime, browsers or processes: `quick` leaves them out.
heavy='^ddiff/(cmd/ddiff|cmd/ddiff/bench|coordinator/report|gpuworker|gpuworker/(enginecache|job)|restore|restore/(check|method|onnx|onnx/(modelfile|onnxruntime)|operator|prior|prior/.*|solver))$'

# These write and read many rows, which shows how memory grows, and takes ten times as long with the race detector.
# Other tests of the same packages run the same code with few rows and the detector.
bulk='^Test(ManyItems|RunStreams|StartsWithProgress|MemoryOfWaitingCampaigns|MemoryDoesNotGrowWithRows|MemoryOfRows)$'

# The race detector watches no codecs and no drawing in libraries, which have no goroutines, and which it slows down ten times: reports of campaigns
# would take most of its time.
race=(-race)
for package in image/... compress/... github.com/klauspost/compress/{flate,internal/le} golang.org/x/image/... github.com/golang/freetype/... \
	ddiff/restore/raster/...; do
	race+=("-gcflags=$package=-race=false")
done

# Stages run in two lanes beside each other: processes wait for each other while the other lane computes.
stage() { # stage NAME COMMAND...
	local name=$1 begin=$SECONDS result=passed TIMEFORMAT='== processor time: %U s, and %S s in the kernel'
	shift
	echo
	echo "== $name"
	if ! time "$@" </dev/null; then
		echo " [$name]" >>"$reports/failed"
		result=FAILED
	fi
	echo "== $name: $result in $((SECONDS - begin)) s"
}

gotests() { # gotests REPORT GO-TEST-ARGUMENTS...
	"$PWD/${GOTESTSUM:?run this script through make}" --format pkgname --format-hide-empty-pkg --hide-summary skipped \
		--junitfile "$reports/$1.xml" -- -timeout 30m "${@:2}"
}

racing_program() { # some tests of the command line, with the race detector in the program
	GOFLAGS="$GOFLAGS ${race[*]:1}" DDIFF_RACE=1 gotests program-race -run '^Test(Kill|CancelFreesHungWorker)$' ./cmd/ddiff
}

# -count=1 disables Go's test cache, which does not track what git and go print, and the programs that tests build.

testbed() { # the tests of the module that runs clusters of processes, which the race detector does not see
	local runner=$PWD/$GOTESTSUM
	(cd internal/testbed && "$runner" --format pkgname --format-hide-empty-pkg --hide-summary skipped \
		--junitfile "$reports/testbed.xml" -- -count=1 -timeout 30m -p 1 ./...)
}

views() { # the module with the parser of Prometheus; its program, a collector, is for make telemetry-test
	local runner=$PWD/$GOTESTSUM
	(cd internal/telemetrytest && "$runner" --format pkgname --format-hide-empty-pkg --hide-summary skipped \
		--junitfile "$reports/views.xml" .)
}

deployment() { # the module with compose.yaml, the units and the archives of a release
	local runner=$PWD/$GOTESTSUM
	(cd internal/deploy && "$runner" --format pkgname --format-hide-empty-pkg --hide-summary skipped \
		--junitfile "$reports/deploy.xml" -- -count=1 -timeout 30m ./...)
}

pythontests() { # pytest itself keeps the files of its last three runs, 600 MB each
	local files result
	files=$(mktemp -d)
	PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -p no:cacheprovider --basetemp="$files" --junitxml="$reports/python.xml" tools/tests
	result=$?
	rm -r "$files"
	return $result
}

if ! packages=$(go list ./... | grep -v '^ddiff/internal/repository$'); then
	echo "cannot list the packages" >&2
	exit 1
fi

rules() { # rules [-short]
	stage "repository rules" gotests repository -count=1 "$@" ./internal/repository
	stage "dashboards and alerts" views
}

packages_lane() { # lint, the packages and exported priors
	mapfile -t racing < <(grep -Ev "$compute|^ddiff/cmd/ddiff$" <<<"$packages")
	mapfile -t plain < <(grep -E "$compute" <<<"$packages")
	stage lint make lint
	stage "Go, with the race detector" gotests race "${race[@]}" -skip "$bulk" "${racing[@]}"
	stage "streams, with the race detector" gotests streams "${race[@]}" -run 'Streams' ./restore/solver ./restore/prior
	stage "many rows" gotests bulk -run "$bulk" ./coordinator ./coordinator/serve/cluster ./dataset
	# One package at a time: each uses all cores.
	stage "Go, without the race detector" gotests plain -p 1 "${plain[@]}"
	stage "exported priors" scripts/priors-test.sh
}

processes_lane() { # the program, clusters, the repository and Python
	stage "the program" gotests program ./cmd/ddiff
	stage "the program, with the race detector" racing_program
	stage "clusters of processes" testbed
	stage "compose, units and releases" deployment
	rules
	stage Python pythontests
	stage "the site" scripts/docs.sh
}

if [[ ${1:-} == quick ]]; then
	mapfile -t light < <(grep -Ev "$heavy" <<<"$packages")
	stage lint make lint
	rules -short
	# Many of these tests wait for servers and intervals, not for a core.
	stage "Go, without compute" gotests quick -short -parallel 12 "${light[@]}"
else
	# `make runtime` installs OpenVINO only together with ONNX Runtime, and without it its tests skip.
	[[ ${CI:-} != true ]] || bin/ddiff runtime install --ep openvino >/dev/null || echo "no OpenVINO"
	processes_lane >"$reports/processes.log" 2>&1 &
	processes=$!
	packages_lane &
	lanes="$! $processes"
	# The shell starts both with interrupts ignored, and cannot act on a signal while it waits for a program.
	trap 'trap - INT TERM; kill 0' INT TERM
	for lane in $lanes; do
		wait "$lane" || echo " [a lane]" >>"$reports/failed"
	done
	cat "$reports/processes.log"
	stage "figures of the host" make bench-host
fi

enforce=0
if [[ ${CI:-} == true && ${1:-} != quick ]]; then
	enforce=1
fi
stage "slowest and skipped tests" awk -v list=.ci/may-skip -v enforce="$enforce" -f scripts/test-report.awk "$reports"/*.xml

echo
if [[ -e $reports/failed ]]; then
	echo "FAILED after $SECONDS s:$(tr -d '\n' <"$reports/failed")"
	exit 1
fi
echo "everything passed in $SECONDS s"
