#!/usr/bin/env bash
# A crawl of 1,000 hosts on loopback, of which 100 are slow, 50 fail and 10 have no end: when the small
# ones are done, the gaps that each host saw, and peak memory. Usage: benches/hosts.sh [SECONDS [DELAY_MS]]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-120} delay=${2:-1000} webs=benches/webs/target/release
if [ -z "${CRAWL:-}" ]; then
  cargo build --release --quiet
  CRAWL=target/release/crawl
fi
if [ -n "${WEBS:-}" ]; then webs=$WEBS; else
  cargo build --release --quiet --manifest-path benches/webs/Cargo.toml
fi
ulimit -n "$(ulimit -H -n)"
work=$(mktemp -d)
server='' crawler=''
end() {
  for process in $crawler $server; do kill "$process" 2> /dev/null || true; done
  wait
  rm -rf "$work"
}
trap end EXIT
"$webs/hosts" serve "$work" & server=$!
until [ -s "$work/hosts" ]; do kill -0 "$server"; sleep 0.1; done
printf '[frontier]\ndelay = "%sms"\n[fetch]\nallow_private = true\n' "$delay" > "$work/config.toml"
started=$(date +%s%6N)
"$CRAWL" --config "$work/config.toml" --seeds "$work/seeds" --store "$work/store" \
  --report "$work/report.json" --quiet > "$work/out" 2> "$work/err" & crawler=$!
peak=0 ticks=0 until=$(($(date +%s) + seconds))
while [ "$(date +%s)" -lt "$until" ] && kill -0 "$crawler" 2> /dev/null; do
  peak=$(awk '/VmHWM/ { print $2 }' "/proc/$crawler/status" 2> /dev/null || echo "$peak")
  ticks=$(awk '{ print $14 + $15 }' "/proc/$crawler/stat" 2> /dev/null || echo "$ticks")
  sleep 0.2
done
kill -INT "$crawler" 2> /dev/null || true
code=0; wait "$crawler" || code=$?
crawler=''
kill "$server"; wait "$server" || true
server=''
[ "$code" = 130 ] || cat "$work/err" >&2
echo "crawl ended with code $code (130 is stopped) after $(awk '/"seconds"/ { print $2 + 0 }' "$work/report.json") s"
echo "peak memory of crawl: $((peak / 1024)) MiB; processor time: $((ticks / $(getconf CLK_TCK))) s"
"$webs/hosts" score "$work" "$delay" "$started"
