#!/usr/bin/env bash
# Judges one deduplicator on real templated sites: which different pages of one site does it join?
#
#   sites.sh SPLIT FOLDER COMMAND [NAME]
#
# SPLIT    dev or test: which packages of documentation, see sites.py
# FOLDER   where packages (0.9 GB for both), pages (0.3 GB a split) and results are kept for the next run
# COMMAND  run by bash with $IN (the pages), $OUT (an empty folder) and $CLUSTERS ($OUT/clusters.jsonl, to be written)
# NAME     the row of the table (the command)
# environment: CRAWL (crawl: the binary that extracts main texts, asked once)
#
# Prints what merges.py says of the run, and the table of all runs in FOLDER/SPLIT.results.jsonl. A name that is in it
# already is replaced.
#
#   sites.sh dev FOLDER 'crawl dedup $IN --out $OUT' crawl
#   sites.sh dev FOLDER './rivals.py rensa-exact80 $IN $CLUSTERS' rensa-exact80
set -euo pipefail
if [ "${1:-}" = --help ] || [ $# -lt 3 ]; then
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
    [ "${1:-}" = --help ]
    exit
fi
split=$1 folder=$2 command=$3 name=${4:-$3}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
"$here/sites.py" "$split" "$folder" --crawl "${CRAWL:-crawl}"
results=$folder/$split.results.jsonl
run=$folder/$split.runs/${name//[^A-Za-z0-9.-]/_}
rm -rf "$run"
mkdir -p "$run"
export IN=$folder/$split.jsonl OUT=$run CLUSTERS=$run/clusters.jsonl
bash -c "$command"
touch "$results"
grep -vF "{\"name\": $(python3 -c 'import json, sys; print(json.dumps(sys.argv[1]))' "$name")," "$results" >"$run/others" || true
mv "$run/others" "$results"
"$here/merges.py" "$IN" "$run" --name "$name" --results "$results" --tsv "$run/pairs.tsv"
"$here/merges.py" --table "$results"
