#!/usr/bin/env bash
# Documents a second of `crawl dedup` and of rivals on the same file, in turn, in one run.
# Usage: benches/dedup.sh FILE.jsonl [ROUNDS] [RIVAL...]; rivals as in benches/quality/rivals.py,
# for which its packages must be installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
file=$1 rounds=${2:-3}
shift $(($# < 2 ? $# : 2))
crawl=${CRAWL:-$here/../target/release/crawl}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
documents=$(wc -l < "$file")
measure() { # NAME COMMAND...: documents/s by the wall and by CPU time, peak memory
  local name=$1; shift
  /usr/bin/time -o "$work/time" -f '%e %U %S %M' "$@" > "$work/out" 2> "$work/err" || { tail -3 "$work/err" >&2; return 1; }
  read -r wall user system peak < "$work/time"
  awk -v n="$name" -v d="$documents" -v w="$wall" -v c="$(echo "$user $system" | awk '{print $1+$2}')" -v p="$peak" \
    'BEGIN { printf "%-24s %8.0f documents/s  %8.0f a CPU second  %6.0f MiB\n", n, d/w, d/c, p/1024 }'
}
for _ in $(seq "$rounds"); do
  measure crawl "$crawl" dedup "$file" --out "$work/ours" --quiet
  for extractor in ${EXTRACTORS:-}; do
    measure "crawl, $extractor" "$crawl" dedup "$file" --out "$work/ours" --quiet --extractor "$extractor"
  done
  for rival in "$@"; do
    measure "$rival" python3 "$here/quality/rivals.py" "$rival" "$file" "$work/rival.jsonl"
  done
done
