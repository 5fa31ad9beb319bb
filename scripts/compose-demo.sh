#!/usr/bin/env bash
# Builds and starts the cluster of compose.yaml, submits a campaign, waits for its end, and prints its last line. The
# cluster stays: look at the pages that compose.yaml lists, then remove everything with `docker compose down -v`.
#
# Exit code 1: there is no engine, or the campaign failed; one line names the reason.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

missing() {
	echo "make compose-demo needs Docker with its compose plugin: $*" >&2
	exit 1
}

command -v docker >/dev/null || missing "there is no docker"
docker compose version >/dev/null 2>&1 || missing "docker compose is not installed"
docker info >/dev/null 2>&1 || missing "no engine answers docker info"

export COMPOSE_FILE=compose.yaml
docker compose build --build-arg "VERSION=$(git describe --tags --always --dirty)" --build-arg "REVISION=$(git rev-parse HEAD)"
docker compose up --detach --wait --wait-timeout 300
last=$(docker compose exec -T --env "DDIFF_TOKEN=$(<deploy/compose/admin-token)" coordinator ddiff submit /campaign.yaml --watch | tail -n 1)
echo "$last"
[[ $last =~ ^done=[1-9][0-9]*\ failed=0\ dead=0\ lost=0$ ]] || { echo "the campaign failed; see: docker compose logs" >&2; exit 1; }
echo "campaigns: http://127.0.0.1:8620 (token: deploy/compose/admin-token)  dashboards: http://127.0.0.1:3000  traces: http://127.0.0.1:16686  remove with: docker compose down -v"
