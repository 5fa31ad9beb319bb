#!/usr/bin/env bash
# Copies the tracked documents, and the files that they link or install, to a folder, where each has its place in the repository: for the site and
# for release archives.
#
#   pages.sh DIR
set -euo pipefail
mkdir -p "$1"
to=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
git ls-files -z '*.md' docs examples LICENSE CITATION.cff charts/ddiff compose.yaml deploy cmd/ddiff/run/auto.csv restore/method/doc.go tools/prior_training/loss-base.csv \
	':!*/testdata/*' ':!.github' | sort -zu | xargs -0 cp --parents -t "$to"
