#!/usr/bin/env bash
# Runs one deduplicator over the kinds of one corpus and prints the table of all that ran on that corpus.
#
#   run.sh CORPUS RESULTS NAME COMMAND
#
# CORPUS   folder of edits.py, one file a kind
# RESULTS  file of one JSON line a run, appended to; a run that is in it already is not repeated
# NAME     the row of the table
# COMMAND  run by bash with $IN (the file), $OUT (an empty folder) and $CLUSTERS ($OUT/clusters.jsonl, to be written)
# environment: KINDS (all), LIMIT (600: seconds for the whole corpus; kinds that are not reached are left out)
#
#   run.sh quality/en.dev results/en.dev.jsonl crawl-balanced 'crawl dedup $IN --out $OUT --preset balanced'
#   run.sh quality/en.dev results/en.dev.jsonl rensa 'python3 rivals.py rensa $IN $CLUSTERS'
set -euo pipefail
if [ "${1:-}" = --help ] || [ $# -ne 4 ]; then
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
    exit $(($# != 1))
fi
corpus=$1 results=$2 name=$3 command=$4
here=$(cd "$(dirname "$0")" && pwd)
kinds=${KINDS:-stamp title boil10 boil30 edit2 edit5 edit10 edit25 blocks cut70 cut50 shuffle embed embed3 site03 site10 site20 fourth number name added edition none}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
TIMEFORMAT='%R %U %S'
end=$((SECONDS + ${LIMIT:-600}))
mkdir -p "$(dirname "$results")"
touch "$results"
for kind in $kinds; do
    grep -qF "\"method\": \"$name\", \"kind\": \"$kind\"" "$results" && continue
    left=$((end - SECONDS))
    [ "$left" -gt 0 ] || break
    export IN=$corpus/$kind.jsonl OUT=$work/$kind CLUSTERS=$work/$kind/clusters.jsonl
    mkdir "$OUT"
    if ! { time timeout "$left" bash -c "$command" >"$work/stdout" 2>"$work/stderr"; } 2>"$work/time"; then
        echo "$name $kind: failed or out of time" >&2
        tail -n 3 "$work/stderr" >&2
        continue
    fi
    read -r wall user system <"$work/time"
    score=$(python3 "$here/score.py" --truth "$IN" --clusters "$CLUSTERS")
    own=$(tail -n 1 "$work/stdout" | grep -o '"seconds": .*}' ||
        echo "\"seconds\": $wall, \"cpu_seconds\": $(awk "BEGIN { print $user + $system }")}")
    echo "{\"method\": \"$name\", \"kind\": \"$kind\", ${score:1:-1}, $own" >>"$results"
    rm -rf "$OUT"
done
python3 "$here/table.py" "$results"
