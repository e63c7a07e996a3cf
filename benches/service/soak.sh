#!/usr/bin/env bash
# A mixed load on the docId service for a long time: is its memory flat?
# Usage: benches/service/soak.sh [SECONDS [ARTICLES [IDLE]]]
# With WORK=FOLDER the store of `run.sh` there is used (and grows by some reprints).
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-600} articles=${2:-1000000} idle=${3:-10000}
command -v curl > /dev/null || { echo "curl is missing: apt-get install curl" >&2; exit 2; }
. benches/service/build.sh
ulimit -n "$(ulimit -H -n)"
room=$(ulimit -n)
[ "$room" = unlimited ] || [ "$idle" -le $((room - 500)) ] || idle=$((room - 500))
ours=''
end() {
  [ -z "$ours" ] || kill "$ours" 2> /dev/null || true
  wait
  [ -n "${WORK:-}" ] || rm -rf "$work"
}
trap end EXIT
printf '[api]\nlisten = "127.0.0.1:18080"\n' > "$work/soak.toml"
"$CRAWL" serve --config "$work/soak.toml" --store "$work/store" --quiet & ours=$!
until curl -s -o "$work/ignored" http://127.0.0.1:18080/readyz; do kill -0 "$ours"; sleep 0.2; done
if [ ! -e "$work/loaded" ]; then
  "$SERVICE/articles" corpus "$articles" > "$work/corpus.jsonl"
  curl -s -X POST -T "$work/corpus.jsonl" -H 'Expect:' -H 'Content-Type: application/x-ndjson' \
    -o "$work/ignored" http://127.0.0.1:18080/v1/articles
  touch "$work/loaded"
fi
before=$(curl -s http://127.0.0.1:18080/metrics | awk '/^uniqcrawl_(documents|index_bytes) / { printf "%s %.0f, ", substr($1, 11), $2 }')
echo "${before}load $(cut -d' ' -f1-3 /proc/loadavg); $idle idle connections"
code=0
"$SERVICE/soak" 127.0.0.1:18080 "$ours" "$seconds" "$idle" "$articles" || code=$?
curl -s http://127.0.0.1:18080/metrics | awk '/^uniqcrawl_(documents|copies|contents|index_bytes|store_bytes) / { printf "%s %.0f, ", substr($1, 11), $2 }'
echo "load $(cut -d' ' -f1-3 /proc/loadavg)"
exit $code
