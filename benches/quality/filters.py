#!/usr/bin/env python3
"""Compares the filters of `crawl dedup` with datatrove's, document by document, on the same texts.

  filters.py FILE.jsonl [--crawl target/release/crawl] [--show 5]

FILE has {"id","text"} a line, in English; documents need different ids. Each filter of datatrove runs with its
defaults: GopherRepetitionFilter, GopherQualityFilter, C4QualityFilter, FineWebQualityFilter, PIIFormatter (mail
addresses, public IP addresses). `crawl` runs with the same one on. Compared are the reason of each document that is
filtered and, for C4 and the masks, the text of each that is kept. Exit code 1 if anything differs.

Packages: datatrove[io]==0.10.1 and spacy==3.8.18 (requirements.txt).
"""

import argparse, collections, json, os, subprocess, sys, tempfile, time

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)
from datatrove.pipeline.formatters import PIIFormatter

FILTERS = {
    "gopher-repetition": GopherRepetitionFilter,
    "gopher-quality": GopherQualityFilter,
    "c4": C4QualityFilter,
    "fineweb": FineWebQualityFilter,
}


def theirs(name, lines):
    """Reason, and text of what is kept, of each document."""
    answers = {}
    step = PIIFormatter() if name == "mask" else FILTERS[name]()
    for line in lines:
        if name == "mask":
            # Masks go around in each document, not in all of them.
            answers[line["id"]] = (None, PIIFormatter().format(line["text"]))
            continue
        document = Document(text=line["text"], id=line["id"])
        kept = step.filter(document)
        kept, reason = kept if isinstance(kept, tuple) else (kept, None)
        answers[line["id"]] = (None, document.text) if kept else (reason, None)
    return answers


def ours(crawl, name, path, folder):
    flags = ["--mask", "mail,ip"] if name == "mask" else ["--filter", name]
    # The seeds' bare rule without keys of sentences joins next to nothing; what it joins is looked up by its id.
    command = [crawl, "dedup", path, "--out", folder, "--quiet", "--preset", "seeds", *flags]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    answers = {}
    for row in map(json.loads, open(f"{folder}/filtered.jsonl", encoding="utf-8")):
        answers[row["id"]] = (row["reason"], None)
    for row in map(json.loads, open(f"{folder}/kept.jsonl", encoding="utf-8")):
        answers[row["id"]] = (None, row["text"])
    for row in map(json.loads, open(f"{folder}/duplicates.jsonl", encoding="utf-8")):
        if row["id"] != row["duplicateOf"]:
            answers.setdefault(row["id"], (None, None))
    return answers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--crawl", default="target/release/crawl")
    parser.add_argument("--show", type=int, default=5)
    args = parser.parse_args()
    lines = [json.loads(line) for line in open(args.file, encoding="utf-8")]
    assert len({line["id"] for line in lines}) == len(lines), "ids are not unique"
    different = 0
    for name in [*FILTERS, "mask"]:
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            found = ours(os.path.abspath(args.crawl), name, args.file, folder)
            took = time.monotonic() - began
        began = time.monotonic()
        expected = theirs(name, lines)
        theirs_took = time.monotonic() - began
        missing = set(expected) - set(found)
        wrong = []
        for key, (reason, text) in expected.items():
            ours_reason, ours_text = found.get(key, ("not there", None))
            if reason != ours_reason or None not in (text, ours_text) and name in ("c4", "mask") and text != ours_text:
                wrong.append((key, reason, ours_reason))
        different += len(wrong) + len(missing)
        counts = collections.Counter(reason or "kept" for reason, _ in expected.values())
        mine = collections.Counter(reason or "kept" for reason, _ in found.values())
        print(f"{name}: {len(lines)} documents, {len(wrong)} differ; {took:.1f} s, datatrove {theirs_took:.1f} s")
        for reason in sorted(counts | mine, key=lambda r: -counts[r]):
            print(f"  {reason:32} {counts[reason]:7} {mine[reason]:7}")
        for key, reason, ours_reason in wrong[: args.show]:
            print(f"  differs: {key}: datatrove {reason}, crawl {ours_reason}")
    sys.exit(different > 0)


main()
