#!/usr/bin/env bash
# Compares this tree with commit c0ac6fd, whose identities must stay, and whose images up to rounding: runs the demo, with its settings of then, and a small campaign of all
# methods and tasks with both programs on this machine, and compares the results. Arguments go to each ddiff run, for
# example --limit 1. About a quarter of an hour without. It uses one thread, because the logarithm of the baseline's nonlinear
# deblur depends on how threads divide the work.
set -euo pipefail
cd "$(dirname "$0")/.."

BASELINE=c0ac6fd
CAMPAIGNS=coordinator/shard/testdata/golden

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

git cat-file -e "$BASELINE^{commit}" 2>/dev/null || {
    echo "golden: commit $BASELINE is missing; fetch the whole history with: git fetch --unshallow" >&2
    exit 1
}
mkdir "$work/baseline"
git archive "$BASELINE" | tar -x -C "$work/baseline"
(cd "$work/baseline" && GOFLAGS="${GOFLAGS:-} -buildvcs=false" go build -o ddiff ./cmd/ddiff)
# Both programs read the same files: the images and the demo of the baseline.
for name in demo methods; do
    sed 's#\.\./\.\./\.\./\.\./examples#examples#' "$CAMPAIGNS/$name.yaml" > "$work/baseline/current-$name.yaml"
    # The baseline does not know these settings, which are its behaviour.
    sed 's#, answer: x_plus_u, recover: never##; s#t0: none#t0: 999#' "$work/baseline/current-$name.yaml" > "$work/baseline/baseline-$name.yaml"
done

pairs=()
for name in demo methods; do
    for program in baseline current; do
        # The baseline has ONNX Runtime's own layout.
        binary=$PWD/bin/ddiff layout=(--device cpu --provider-option layout=nchw)
        [ "$program" = baseline ] && binary=$work/baseline/ddiff layout=()
        echo "golden: $name with the $program program"
        "$binary" run "$work/baseline/$program-$name.yaml" --out "$work/$program-$name" --threads 1 "${layout[@]}" "$@" > "$work/log" 2>&1 || {
            tail -n 20 "$work/log" >&2
            exit 1
        }
    done
    pairs+=("$work/baseline-$name" "$work/current-$name")
done
go run ./internal/golden "${pairs[@]}"
