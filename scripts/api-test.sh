#!/bin/sh
# Sends requests that schemathesis generates from the OpenAPI document to a real coordinator with a real NATS server, with a token of the role
# admin, for REQUEST_SECONDS. It installs schemathesis from PyPI into a temporary directory.
set -eu
dir=$(mktemp -d)
processes=
trap 'for p in $processes; do kill "$p" 2>/dev/null || true; done; wait; rm -rf "$dir"' EXIT
python3 -m venv "$dir/python"
"$dir/python/bin/pip" -q install schemathesis==4.32.5 httpx==0.28.1
port=$("$dir/python/bin/python" -c 'import socket
pair = [socket.socket() for _ in "ab"]
for s in pair: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in pair))')
nats=nats://127.0.0.1:${port% *} api=http://127.0.0.1:${port#* }
go build -o "$dir/nats-server" github.com/nats-io/nats-server/v2
"$dir/nats-server" -js -sd "$dir/js" -a 127.0.0.1 -p "${port% *}" 2>"$dir/nats.log" & processes=$!
echo "the token of an administrator" >"$dir/admin"
bin/ddiff coordinator --nats "$nats" --nats-wait 1m --store "$dir/store" --listen ":${port#* }" --admin-token "$dir/admin" 2>"$dir/log" & processes="$processes $!"
export DDIFF_SERVER="$api"
tries=0
until DDIFF_TOKEN=$(DDIFF_TOKEN=$(cat "$dir/admin") bin/ddiff token create --owner test --role admin 2>/dev/null); do
	tries=$((tries + 1))
	[ "$tries" -lt 60 ] || { cat "$dir/log"; exit 1; }
	sleep 1
done
export DDIFF_TOKEN
printf 'name: api\ndataset: {path: %s/examples/images, size: 64}\ntasks: [denoise]\n' "$PWD" >"$dir/campaign.yaml"
bin/ddiff submit "$dir/campaign.yaml"
# The lines of Python in docs/api.md.
awk '/^```python/ { on = 1; next } /^```/ { on = 0 } on' docs/api.md |
	sed "s|http://127.0.0.1:8620|$api|; " >"$dir/lines.py"
(cd "$dir" && python/bin/python lines.py)
# A campaign that the schema admits may still be wrong, and an empty parameter is an absent one: two checks do not apply.
# It writes a cache into its working directory.
(cd "$dir" && python/bin/schemathesis run "$api/openapi.json" --url "$api/api/v1" -H "Authorization: Bearer $DDIFF_TOKEN" --exclude-path-regex 'events$' \
	--phases coverage,fuzzing --max-time "${REQUEST_SECONDS:-75}" --request-timeout 70 --no-shrink \
	--generation-database none --exclude-checks positive_data_acceptance,negative_data_rejection)
echo "schemathesis: passed"
