#!/usr/bin/env bash
# The memory budget: one site on loopback, crawled and put into the search index under several budgets, and
# DOCUMENTS (200,000) made documents through `crawl dedup`. Prints the peak of each, and exits with 1 if one is
# above its budget. Usage: benches/memory.sh [PAGES [BUDGET...]]
set -euo pipefail
cd "$(dirname "$0")/.."
pages=${1:-20000} port=${PORT:-48124}
shift || true
[ $# -gt 0 ] || set -- "256 MiB" "512 MiB" "1 GiB"
if [ -z "${CRAWL:-}" ]; then
  cargo build --release --quiet
  CRAWL=target/release/crawl
fi
if [ -z "${SITE:-}" ]; then
  cargo build --release --quiet --manifest-path benches/rivals/Cargo.toml --bin site
  SITE=benches/rivals/target/release/site
fi
work=$(mktemp -d)
"$SITE" "127.0.0.1:$port" "$pages" > "$work/site" &
site=$!
trap 'kill $site; rm -rf "$work"' EXIT
until [ -s "$work/site" ]; do kill -0 "$site"; sleep 0.1; done
echo "http://127.0.0.1:$port/" > "$work/seeds"
python3 - "$CRAWL" "$work" "$@" <<'PY'
import json, os, random, re, shutil, subprocess, sys
crawl, work, budgets = sys.argv[1], sys.argv[2], sys.argv[3:]
store, above = f'{work}/store', 0
def peak(*command):
    child = subprocess.Popen([crawl, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out = child.stdout.read()
    _, status, use = os.wait4(child.pid, 0)
    assert status == 0, (command, status)
    return use.ru_maxrss / 1024, out
documents = int(os.environ.get('DOCUMENTS', 200_000))
draw, words = random.Random(7), [f'word{number}' for number in range(20_000)]
with open(f'{work}/documents.jsonl', 'w') as file:
    kept = ['']
    for number in range(documents):
        text = ' '.join(draw.choices(words, k=draw.randint(40, 300)))
        if number % 4 == 3:
            # Most of an earlier one, and as much again.
            text = f'{draw.choice(kept)[:1_000]} {text[:200]}'
        elif number % 100 == 0:
            kept.append(text)
        file.write(json.dumps({'id': number, 'text': text}) + '\n')
print('budget    command            peak MiB')
for budget in budgets:
    number, unit = re.fullmatch(r'(\d+) ?(MiB|GiB)', budget).groups()
    mib = int(number) * (1024 if unit == 'GiB' else 1)
    shutil.rmtree(store, ignore_errors=True)
    with open(f'{work}/settings', 'w') as file:
        file.write(f'memory = "{budget}"\n')
    common = ['--store', store, '--config', f'{work}/settings', '--quiet', '--json']
    one, out = peak('--seeds', f'{work}/seeds', '--allow-private', '--delay', '0',
                    '--connections-per-host', '64', *common)
    pages = json.loads(out)['pages']
    two, _ = peak('search', 'page', *common[:-2])
    three, _ = peak('dedup', f'{work}/documents.jsonl', '--out', f'{work}/out', '--memory', budget.replace(' ', ''))
    shutil.rmtree(f'{work}/out')
    for name, used in ((f'crawl of {pages}', one), ('search', two), (f'dedup of {documents}', three)):
        print(f'{budget:8}  {name:18} {used:7.1f}{"" if used <= mib else "  above its budget"}', flush=True)
        above += used > mib
sys.exit(above > 0)
PY
