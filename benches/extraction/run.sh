#!/usr/bin/env bash
# Pages per CPU second of `crawl extract` beside parsing alone and beside other extractors, on the
# same pages in one run, on one core.
#
#   run.sh [--data DIR] [--pages N] [--core N]
#
# The options are those of speed.py. Without --data, 1,000 pages are made, so that the figures can be
# compared between machines; they say less of the web than labelled pages do.
# environment: PYTHON (python3; with the packages of requirements.txt, resiliparse and trafilatura
# run too), SLOW (200: pages for trafilatura)
set -euo pipefail
if [ "${1:-}" = --help ]; then
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
    exit
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
python=${PYTHON:-python3}
cargo build --release --quiet --locked --manifest-path "$root/Cargo.toml" --target-dir "$root/target"
cargo build --release --quiet --locked --manifest-path "$root/benches/rivals/Cargo.toml" \
    --target-dir "$root/benches/rivals/target" --no-default-features --features extractors
rival=$root/benches/rivals/target/release/extractor
tools=(--tool "parsing alone=$rival parse"
    --tool "**crawl**=$root/target/release/crawl extract --jsonl --threads 1"
    --tool "dom_smoothie=$rival dom_smoothie")
if "$python" -c 'import resiliparse' 2>/dev/null; then
    tools+=(--tool "resiliparse=$python $here/python_rivals.py resiliparse")
fi
if "$python" -c 'import trafilatura' 2>/dev/null; then
    tools+=(--some "${SLOW:-200}:trafilatura=$python $here/python_rivals.py trafilatura")
fi
exec "$python" "$here/speed.py" "${tools[@]}" "$@"
