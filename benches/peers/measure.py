#!/usr/bin/env python3
"""Measures `crawl` beside its peers on one site of known copies, in turn; called by ../peers.sh.

  measure.py --runs N --truth FILE --work FOLDER --crawl BINARY --rivals FOLDER --python BINARY
             --peers NAME,... [--limit SECONDS] URL...
"""

import argparse, json, os, shutil, statistics, sys
from score import Truth, lines, of_export, score
from tree import run

HERE = os.path.dirname(os.path.abspath(__file__))
# What `crawl` is to reach beside each of them: a multiple of its pages a second.
GOALS = {"spider": 0.5, "assembled": 2, "scrapy": 10, "crawlee": 10}
NAMES = {
    "spider": "`spider` alone, which keeps nothing",
    "assembled": "`spider` + `dom_smoothie` + `gaoya` + `redb`",
    "scrapy": "Scrapy + trafilatura + datasketch + SQLite",
    "crawlee": "Crawlee + trafilatura + datasketch + SQLite",
    "crawl": "**`crawl`**, with its export",
}
# They write a line for each page while they run, so that it can be told how far they have come.
LIMITED = ("assembled", "scrapy", "crawlee")
# `spider` keeps the links that it has seen in SQLite as soon as a site has more than these. It makes
# an index of the same name for two tables at a time, so that the links may be left without one, and
# all of them are then read for each new one: measured here is what it does in memory.
ENVIRONMENT = {
    "LINKS_VISITED_MEMORY_LIMIT": "1000000000",
    "EXTRA_LINKS_MEMORY_LIMIT": "1000000000",
}


def command(args, name, folder):
    if name == "spider":
        return [f"{args.rivals}/spider-run", *args.urls]
    if name == "assembled":
        return [f"{args.rivals}/assembled", folder, *args.urls]
    if name == "crawl":
        seeds = f"{args.work}/seeds"
        flags = "--allow-private --delay 0 --connections-per-host 64 --quiet"
        store = f"{folder}/store"
        crawl = f"'{args.crawl}' --seeds '{seeds}' --store '{store}' {flags}"
        export = f"'{args.crawl}' export --store '{store}' --out '{folder}/out'"
        return ["sh", "-c", f"{crawl} > '{folder}/report' && {export}"]
    return [args.python, f"{HERE}/{name}_peer.py", folder, *args.urls]


def measured(args, name, truth):
    folder = f"{args.work}/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    limit = args.limit if name in LIMITED else None
    log, environment = f"{args.work}/{name}.log", {**os.environ, **ENVIRONMENT}
    took = run(command(args, name, folder), log, limit, cwd=folder, env=environment)
    found = {}
    if name == "crawl":
        found = score(truth, of_export(f"{folder}/out"))
    elif name != "spider":
        found = score(truth, lines(f"{folder}/pages.jsonl"))
    pages = found["stored"] if found else json.loads(took["printed"])["pages"]
    line = {
        "name": name,
        "pages": pages,
        "ended": took["ended"],
        "seconds": round(took["seconds"], 2),
        "pages_per_second": pages / took["seconds"],
        "cpu_ms_per_page": took["cpu"] * 1000 / max(1, pages),
        "peak_mib": took["peak_mib"],
        **found,
    }
    print(json.dumps(line), file=sys.stderr, flush=True)
    return line


def ended(runs):
    """Whether a program was not done in time, so that copies and originals are not all stored."""
    return any(line["ended"] for line in runs)


def table(all_lines, peers):
    print("| | pages/s | crawl / it (least to most) | CPU ms a page | it / crawl ", end="")
    print(f"| peak MiB | stored | recall | precision |\n|---|{'---|' * 8}")
    for name in peers:
        own, ours = all_lines[name], all_lines["crawl"]
        middle = lambda key: statistics.median(line[key] for line in own)
        pairs = list(zip(ours, own))
        ratios = [a["pages_per_second"] / b["pages_per_second"] for a, b in pairs]
        cpu = statistics.median(b["cpu_ms_per_page"] / a["cpu_ms_per_page"] for a, b in pairs)
        times = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        found = "| 0 | | |"
        if name != "spider":
            recall = "not done" if ended(own) else f"{middle('recall'):.2%}"
            shares = f"{recall} | {middle('precision'):.2%}"
            found = f"| {middle('stored'):.0f} | {shares} |"
        print(
            f"| {NAMES[name]} | {middle('pages_per_second'):.0f} | {times} "
            f"| {middle('cpu_ms_per_page'):.2f} | {cpu:.2f} | {middle('peak_mib'):.0f} {found}"
        )


def details(all_lines, peers):
    """Copies found by kind of edit and by host, and wrong pairs by what they share: last run."""
    named = [name for name in peers if name != "spider"]
    last = {name: all_lines[name][-1] for name in named}
    print(f"\n| copies found | {' | '.join(named)} |\n|---|{'---|' * len(named)}")
    for kind in sorted(last["crawl"]["kinds"]):
        print(f"| {kind} | {' | '.join(last[name]['kinds'][kind] for name in named)} |")
    for kind in sorted({kind for line in last.values() for kind in line["wrong"]}):
        counts = (str(last[name]["wrong"].get(kind, 0)) for name in named)
        print(f"| *wrong pairs: {kind}* | {' | '.join(counts)} |")


def unmet(all_lines, peers):
    middle = lambda name, key: statistics.median(line[key] for line in all_lines[name])
    for name in peers:
        if name == "crawl":
            continue
        pairs = zip(all_lines["crawl"], all_lines[name])
        ratio = statistics.median(a["pages_per_second"] / b["pages_per_second"] for a, b in pairs)
        if ratio < GOALS[name]:
            yield f"crawl / {name} is {ratio:.2f}, not {GOALS[name]}"
        if name == "spider" or ended(all_lines[name]):
            continue
        if middle("crawl", "recall") < middle(name, "recall"):
            yield (
                f"the recall of crawl is {middle('crawl', 'recall'):.2%}, "
                f"below the {middle(name, 'recall'):.2%} of {name}"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("truth", "work", "crawl", "rivals", "python", "peers"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--limit", type=float)
    parser.add_argument("urls", nargs="+")
    args = parser.parse_args()
    with open(f"{args.work}/seeds", "w") as file:
        file.writelines(f"{url}\n" for url in args.urls)
    truth, peers = Truth(args.truth), args.peers.split(",")
    all_lines = {name: [] for name in peers}
    for _ in range(args.runs):
        for name in peers:
            all_lines[name].append(measured(args, name, truth))
    table(all_lines, peers)
    details(all_lines, peers)
    missed = list(unmet(all_lines, peers))
    for goal in missed:
        print(f"goal not met: {goal}")
    if not missed:
        print("all goals are met")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
