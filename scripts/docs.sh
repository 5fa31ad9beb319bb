#!/usr/bin/env bash
# Builds the site of the documents as bin/site and fails at a warning: a link or anchor without target, or a page that the navigation of mkdocs.yml
# lacks. Run it through `make docs`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(mkdocs==1.6.1 mkdocs-material==9.8.2)
venv=.cache/docs-venv
if [[ $(cat $venv/packages 2>/dev/null) != "${packages[*]}" ]]; then
	rm -rf $venv
	"${PYTHON:-/usr/bin/python3}" -m venv $venv
	$venv/bin/pip install --quiet --disable-pip-version-check "${packages[@]}"
	echo "${packages[*]}" >$venv/packages
fi

rm -rf bin/docs bin/site
scripts/pages.sh bin/docs
NO_MKDOCS_2_WARNING=1 $venv/bin/mkdocs build --strict 2>&1 | { grep -v '^INFO' || true; }
echo "pages=$(find bin/site -name '*.html' | wc -l) site=bin/site/index.html"
