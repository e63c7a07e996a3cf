#!/usr/bin/env bash
# Requests a second of the docId service with a million documents in its store, and of the same flow
# on Redis, in one run: the same articles, the same requests, the same load generator.
# Usage: benches/service/run.sh [ARTICLES [SECONDS [CONNECTIONS]]]
# With WORK=FOLDER the articles and the store stay there, and are used if they are there already.
set -euo pipefail
cd "$(dirname "$0")/../.."
articles=${1:-1000000} seconds=${2:-30} connections=${3:-32}
for tool in curl wrk redis-server redis-cli; do
  command -v "$tool" > /dev/null || { echo "$tool is missing: apt-get install curl wrk redis-server" >&2; exit 2; }
done
. benches/service/build.sh
processes=()
end() {
  for process in "${processes[@]}"; do kill "$process" 2> /dev/null || true; done
  wait
  [ -n "${WORK:-}" ] || rm -rf "$work"
}
trap end EXIT
reachable() { # URL PROCESS
  until curl -s -o "$work/ignored" "$1"; do kill -0 "$2"; sleep 0.2; done
}
mib() { awk '/VmRSS/ { print int($2 / 1024) }' "/proc/$1/status"; }
now() { date +%s; }

[ -s "$work/corpus.jsonl" ] || "$SERVICE/articles" corpus "$articles" > "$work/corpus.jsonl"
echo "$articles articles, $(($(stat -c %s "$work/corpus.jsonl") >> 20)) MiB; load $(cut -d' ' -f1-3 /proc/loadavg)"

printf '[api]\nlisten = "127.0.0.1:18080"\nclient_requests_per_second_max = 0\n' > "$work/config.toml"
opened=$(now)
"$CRAWL" serve --config "$work/config.toml" --store "$work/store" --quiet & ours=$!
processes+=("$ours")
reachable http://127.0.0.1:18080/readyz "$ours"
echo "crawl serve: ready after $(($(now) - opened)) s, $(mib "$ours") MiB"
if [ ! -e "$work/loaded" ]; then
  split -n l/2 "$work/corpus.jsonl" "$work/part."
  began=$(now) batches=()
  for part in "$work"/part.a?; do
    curl -s -X POST -T "$part" -H 'Expect:' -H 'Content-Type: application/x-ndjson' -o "$part.answers" \
      http://127.0.0.1:18080/v1/articles & batches+=($!)
  done
  wait "${batches[@]}"
  took=$(($(now) - began))
  answered=$(cat "$work"/part.*.answers | grep -c '"docId"') || true
  new=$(cat "$work"/part.*.answers | grep -c '"good"') || true
  rm "$work"/part.*
  echo "crawl serve: $answered articles stored in $took s, $((answered / (took + 1))) a second, of which $new are new"
  touch "$work/loaded"
fi
began=$(now)
until curl -s http://127.0.0.1:18080/metrics | grep -q '^uniqcrawl_search_waiting 0$'; do sleep 1; done
echo "crawl serve: the index of the search was up to date $(($(now) - began)) s later"
echo "crawl serve: $(mib "$ours") MiB; store $(($(stat -c %s "$work/store/store.redb") >> 20)) MiB"
curl -s http://127.0.0.1:18080/v1/stats; echo

# One Redis answers with each way of writing its log; both have the same keys in databases 0 and 1.
redis() { # NAME PORT FSYNC
  mkdir -p "$work/redis.$1"
  redis-server --port "$2" --bind 127.0.0.1 --dir "$(realpath "$work/redis.$1")" --save '' --appendonly no \
    --appendfsync "$3" --logfile "$(realpath "$work/redis.$1")/log" &
  processes+=($!)
  until redis-cli -p "$2" ping 2> /dev/null | grep -q PONG; do kill -0 $!; sleep 0.2; done
}
used() { redis-cli -p "$1" info memory | awk -F: '/^used_memory:/ { print int($2 / 1048576) }'; }
rm -rf "$work"/redis.*
redis everysec 16391 everysec
began=$(now)
"$SERVICE/redis-doc-id" load "$work/corpus.jsonl" redis://127.0.0.1:16391 0 1
echo "redis: loaded in $(($(now) - began)) s, $(used 16391) MiB for both databases"
redis-cli -p 16391 save > "$work/ignored"
mkdir -p "$work/redis.always"
cp "$work/redis.everysec/dump.rdb" "$work/redis.always/"
redis always 16392 always
port=18081
for fsync in everysec always; do
  server=$([ $fsync = everysec ] && echo 16391 || echo 16392)
  redis-cli -p $server config set appendonly yes > "$work/ignored"
  sleep 1
  while redis-cli -p $server info persistence | grep -qE 'aof_rewrite_(in_progress|scheduled):1'; do sleep 1; done
  for kind in equal near; do
    "$SERVICE/redis-doc-id" serve $port redis://127.0.0.1:$server "$([ $kind = equal ] && echo 0 || echo 1)" $kind \
      > "$work/ignored" & processes+=($!)
    reachable http://127.0.0.1:$port/ $!
    port=$((port + 1))
  done
done

load() { # NAME PORT SECONDS
  NAME=$1 REQUESTS=$requests wrk -t 2 -c "$connections" -d "$3" --timeout 30 -s benches/service/requests.lua \
    "http://127.0.0.1:$2" | grep '^|' || echo "| $1 | failed |"
}
mix() { # HEADING KNOWN NEAR NEW COUNT
  requests=$work/requests
  rm -f "$requests".*
  "$SERVICE/articles" mix "$2" "$3" "$4" "$5" "$articles" "${RUN:-1}" | split -n r/2 -d -a 1 - "$requests."
  printf '\n## %s\n\n' "$1"
  echo "| | requests/s | p50 | p99 | longest | new | duplicates | failed | times from the start again |"
  echo "|---|---|---|---|---|---|---|---|---|"
  for each in "crawl serve:18080" "Redis, equal, everysec:18081" "Redis, near, everysec:18082" \
    "Redis, equal, always:18083" "Redis, near, always:18084"; do
    [ "$2" != 100 ] || load "warming" "${each#*:}" 3 > "$work/ignored"
    load "${each%:*}" "${each#*:}" "$seconds"
  done
  echo "load $(cut -d' ' -f1-3 /proc/loadavg); crawl serve has $(mib "$ours") MiB"
}
echo "$connections connections, $seconds s each"
mix "Known articles" 100 0 0 200000
mix "50 % known, 25 % near copies, 25 % new" 50 25 25 $((seconds * 12000))
