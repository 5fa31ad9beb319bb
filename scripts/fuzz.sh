#!/usr/bin/env bash
# Runs each fuzz target for TIME: fuzz.sh TIME. Go stores a failing input in the package's
# testdata/fuzz; commit it with the fix. Without a limit, Go makes one input smaller for a minute, and tries no other.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
while IFS=: read -r file declaration; do
	go test -run='^$' -fuzz="^${declaration#func }\$" -fuzztime="${1:-10s}" -fuzzminimizetime=1s "./$(dirname "$file")" || failed=1
done < <(git grep --untracked -Eo '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go')
exit $failed
