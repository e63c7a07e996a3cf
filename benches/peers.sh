#!/usr/bin/env bash
# `crawl` beside programs that do the same work: fetch, extract, find copies, store. One site of
# known copies on loopback, each in turn. Usage: benches/peers.sh [RUNS [PAGES]]
# PEERS names those that are measured, SITE_LANGUAGE is en or zh, HOSTS how many hosts the site has.
# LIMIT ends a program that keeps pages after so many seconds: its rate is that of the pages it has kept.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-3} pages=${2:-5000} hosts=${HOSTS:-3}
peers=${PEERS:-spider,assembled,scrapy,crawlee,crawl}
rivals=$PWD/benches/rivals/target/release
cargo build --release --quiet
cargo build --release --quiet --features peers --manifest-path benches/rivals/Cargo.toml \
  --bin site --bin load --bin spider-run --bin assembled
venv=${XDG_CACHE_HOME:-$HOME/.cache}/uniqcrawl-peers
if ! cmp -s benches/peers/requirements.txt "$venv/requirements.txt"; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -qq -r benches/peers/requirements.txt
  cp benches/peers/requirements.txt "$venv/requirements.txt"
fi
free='import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
port=$(python3 -c "$free")
work=$(mktemp -d)
"$rivals/site" "127.0.0.1:$port" "$pages" --copies "$work/truth" --hosts "$hosts" \
  --language "${SITE_LANGUAGE:-en}" > "$work/site" &
site=$!
trap 'kill $site; rm -rf "$work"' EXIT
until [ "$(cat "$work/site" 2> /dev/null | wc -l)" = "$hosts" ]; do kill -0 "$site"; sleep 0.1; done
echo "$(nproc) cores, load $(cut -d' ' -f1-3 /proc/loadavg)"
# The server alone: it must do several times what a crawler asks of it.
echo "server alone: $("$rivals/load" "127.0.0.1:$port" 3 16 1)"
mapfile -t urls < "$work/site"
"$venv/bin/python" benches/peers/measure.py --runs "$runs" --truth "$work/truth" --work "$work" \
  --crawl "$PWD/target/release/crawl" --rivals "$rivals" --python "$venv/bin/python" \
  --peers "$peers" ${LIMIT:+--limit "$LIMIT"} "${urls[@]}"
