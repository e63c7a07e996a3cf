#!/usr/bin/env bash
# Memory of what works on a store as a whole: DOCUMENTS (50,000) made documents in a store, half of them in another one. Prints
# time and peak of backup, verify, restore, compact and merge, and exits with 1 if one is above BOUND (384 MiB).
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${CRAWL:-}" ]; then
  cargo build --release --quiet
  CRAWL=target/release/crawl
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 - "$CRAWL" "$work" "${DOCUMENTS:-50000}" "${BOUND:-384}" <<'PY'
import json, os, random, subprocess, sys, time
crawl, work, documents, bound = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
draw, words = random.Random(7), [f'word{number}' for number in range(20_000)]
for name, count in ('whole', documents), ('half', documents // 2):
    with open(f'{work}/{name}.jsonl', 'w') as file:
        for number in range(count):
            text = ' '.join(draw.choices(words, k=80))
            file.write(json.dumps({'url': f'http://h{number % 500}.example/{name}/{number}', 'text': text}) + '\n')
above = 0
def run(*command):
    global above
    began = time.monotonic()
    child = subprocess.Popen([crawl, *command], stdout=subprocess.DEVNULL, cwd=work)
    _, status, use = os.wait4(child.pid, 0)
    assert status == 0, (command, status)
    peak = use.ru_maxrss / 1024
    # The import takes what `memory` says.
    is_above = command[0] == 'store' and peak > bound
    above += is_above
    print(f'{" ".join(command[:2]):20} {time.monotonic() - began:7.1f} s {peak:7.0f} MiB{" above the bound" if is_above else ""}', flush=True)
for name in 'whole', 'half':
    run('import', '--store', name, f'{name}.jsonl', '--quiet')
    print(f'{name}: {os.path.getsize(f"{work}/{name}/store.redb") / 2**20:.0f} MiB')
run('store', 'backup', '--store', 'whole', '--to', 'backups')
run('store', 'verify', 'backups')
run('store', 'restore', '--from', 'backups', '--store', 'back')
run('store', 'compact', '--store', 'back')
run('store', 'merge', 'half', 'whole', '--into', 'merged', '--quiet')
sys.exit(1 if above else 0)
PY
