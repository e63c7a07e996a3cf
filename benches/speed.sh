#!/usr/bin/env bash
# Pages per second of `crawl` beside the crate `spider`, on one site of 5,000 pages on loopback,
# both without delay, in turn. Usage: benches/speed.sh [RUNS [PAGES]]
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-3} pages=${2:-5000} port=${PORT:-48123}
cargo build --release --quiet
cargo build --release --quiet --manifest-path benches/rivals/Cargo.toml
work=$(mktemp -d)
benches/rivals/target/release/site "127.0.0.1:$port" "$pages" > "$work/site" &
site=$!
trap 'kill $site; rm -rf "$work"' EXIT
until [ -s "$work/site" ]; do sleep 0.1; done
url=http://127.0.0.1:$port/
echo "$url" > "$work/seeds"
# The server alone: it must do several times what a crawler asks of it.
echo "server alone: $(benches/rivals/target/release/load "127.0.0.1:$port" 3 16 "$pages")"

measure() { # NAME COMMAND...: prints seconds, CPU seconds, peak KiB
  local name=$1; shift
  /usr/bin/env python3 - "$name" "$work" "$@" <<'PY'
import json, os, resource, subprocess, sys, time
name, work, command = sys.argv[1], sys.argv[2], sys.argv[3:]
start = time.time()
out = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
wall = time.time() - start
use = resource.getrusage(resource.RUSAGE_CHILDREN)
report = json.loads(out)
cpu = use.ru_utime + use.ru_stime
line = dict(name=name, pages=report['pages'], seconds=round(report['seconds'], 3), wall=round(wall, 3),
            pages_per_second=round(report['pages'] / report['seconds']),
            cpu_ms_per_page=round(cpu * 1000 / report['pages'], 3), peak_mib=use.ru_maxrss // 1024)
print(json.dumps(line)); open(f'{work}/lines', 'a').write(json.dumps(line) + '\n')
PY
}
for run in $(seq "$runs"); do
  measure spider benches/rivals/target/release/spider-run "$url"
  rm -rf "$work/store"
  measure crawl target/release/crawl --seeds "$work/seeds" --store "$work/store" --allow-private \
    --delay 0 --connections-per-host 64 --json --quiet
done
python3 - "$work/lines" <<'PY'
import json, statistics, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
def of(name, key): return [line[key] for line in lines if line['name'] == name]
ratios = [c / s for c, s in zip(of('crawl', 'pages_per_second'), of('spider', 'pages_per_second'))]
for name in ('spider', 'crawl'):
    print(f"{name:7} {statistics.median(of(name, 'pages_per_second')):6.0f} pages/s  "
          f"{statistics.median(of(name, 'cpu_ms_per_page')):.3f} ms CPU a page  "
          f"{statistics.median(of(name, 'peak_mib'))} MiB  {of(name, 'pages')} pages")
print(f"crawl / spider: {statistics.median(ratios):.2f} (median of {len(ratios)} pairs, {min(ratios):.2f} to {max(ratios):.2f})")
PY
