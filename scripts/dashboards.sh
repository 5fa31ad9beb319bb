#!/usr/bin/env bash
# Compares the dashboards of deploy/grafana with Grafana's own types: the TypeScript compiler refuses a field that the type of a
# dashboard lacks, and a value of another type. Needs npm; the packages are stored in .cache/dashboards.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dir=.cache/dashboards
schema=13.2.3
mkdir -p "$dir"
if [[ ! -f $dir/node_modules/@grafana/schema/package.json || $(cat "$dir/schema" 2>/dev/null) != "$schema" ]]; then
	npm install --prefix "$dir" --no-audit --no-fund --ignore-scripts --loglevel error "@grafana/schema@$schema" typescript@5.9 >/dev/null
	echo "$schema" >"$dir/schema"
fi
{
	echo 'import type { Dashboard } from "@grafana/schema";'
	# An enumeration of Grafana is its text in JSON.
	# shellcheck disable=SC2016
	echo 'type Plain<T> = T extends string ? `${T}` : T extends (infer U)[] ? Plain<U>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;'
	n=0
	for file in deploy/grafana/*.json; do
		n=$((n + 1))
		echo "export const dashboard$n: Plain<Dashboard> ="
		cat "$file"
		echo ";"
	done
} >"$dir/dashboards.ts"
"$dir/node_modules/.bin/tsc" --noEmit --strict --skipLibCheck --moduleResolution node --module es2020 --target es2020 "$dir/dashboards.ts"
echo "dashboards: $n match Grafana's schema $schema"
