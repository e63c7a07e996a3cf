#!/bin/sh
# Runs schemathesis (PyPI) against a service: what it is, by its own description. It makes a virtual
# environment in a temporary folder and needs the network for that.
#
#   tests/api/schemathesis.sh [path of the binary]
#
# Left out is the check that whatever fits the description is accepted: a cursor that no list gave
# and an address that is none fit their patterns, and are refused.
set -eu
crawl=${1:-target/debug/crawl}
folder=$(mktemp -d)
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet schemathesis
"$crawl" serve --store "$folder/store" --listen 127.0.0.1:0 >"$folder/out" &
service=$!
trap 'kill "$service"; wait "$service" || true; rm -rf "$folder"' EXIT
until grep -q '^listening on' "$folder/out"; do sleep 0.1; done
address=$(sed -n 's/^listening on //p' "$folder/out")
cd "$folder"
venv/bin/schemathesis run "$address/openapi.json" --max-examples "${EXAMPLES:-100}" \
    --exclude-checks positive_data_acceptance
