#!/usr/bin/env python3
"""The Markdown table of the runs of one corpus.

  table.py RESULTS.jsonl

Columns of edits: recall in %, and behind a stroke the precision in % where it is below 99.95. site
columns: unrelated pairs of one site that were joined, as a share of all of them. none: false pairs
among the originals. Columns of twins: the share of the twins that were joined in %, and behind a
stroke the share of all other pairs of pages of one site that were; only those of `edition` should
be joined.
F1: mean over the edits.
"""

import argparse, json
from edits import KINDS, TWINS

SITES = ["site03", "site10", "site20"]


def cell(run):
    if not run:
        return "–"
    if run["kind"] in TWINS:
        false = f" / {run['false_rate']:.1e}" if run["false_rate"] else ""
        return f"{100 * run['recall']:.1f}{false}"
    if run["recall"] is not None:
        low = run["precision"] < 0.9995
        return f"{100 * run['recall']:.1f}" + (f" / {100 * run['precision']:.1f}" if low else "")
    if run["kind"] in SITES:
        return f"{run['false_rate']:.1e}" if run["false_rate"] else "0"
    return str(run["false_pairs"])


def is_edit(run):
    return run["f1"] is not None and run["kind"] not in TWINS


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results")
    runs = [json.loads(line) for line in open(parser.parse_args().results, encoding="utf-8")]
    by = {(r["method"], r["kind"]): r for r in runs}
    methods = list(dict.fromkeys(r["method"] for r in runs))
    kinds = [k for k in KINDS if any(r["kind"] == k for r in runs)]
    print("|", " | ".join(["method", *kinds, "F1", "documents per CPU second", "peak MB"]), "|")
    print("|---" * (len(kinds) + 4) + "|")
    edits = len({r["kind"] for r in runs if is_edit(r)})
    for method in methods:
        mine = [r for r in runs if r["method"] == method]
        f1 = [r["f1"] for r in mine if is_edit(r)]
        speed = sum(r["documents"] for r in mine) / max(1e-3, sum(r["cpu_seconds"] for r in mine))
        peak = max((r.get("peak_mb", 0) for r in mine), default=0)
        mean = (
            f"{sum(f1) / len(f1):.3f}" + ("" if len(f1) == edits else f" ({len(f1)} kinds)")
            if f1
            else "–"
        )
        print(
            "|",
            " | ".join(
                [
                    method,
                    *(cell(by.get((method, k))) for k in kinds),
                    mean,
                    f"{speed:.0f}",
                    str(peak or "–"),
                ]
            ),
            "|",
        )


if __name__ == "__main__":
    main()
