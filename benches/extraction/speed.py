#!/usr/bin/env python3
"""Pages per CPU second of main-text extractors, on one core, beside parsing alone.

  speed.py --tool NAME=COMMAND ... [--some N:NAME=COMMAND ...] [--data DIR] [--pages N] [--core N]

--tool: a command that answers lines {"id","url","html"} on its standard input with lines
        {"id","text","cpu_ms"}. The first one is parsing alone, which the others are compared with.
--some: the same for a slow tool, which gets N pages only, spread over all.
--data: labelled or other pages, `*.jsonl.xz` with {"id","url","html"} or {"id","url","html_b64",
        "charset"} a line; without it, pages are made.
--pages: at most so many pages of each file, spread over it; or the number of pages to be made.

The pages are cut into batches. Each batch goes to all tools in turn, to another one first each
time, so that whatever else the machine does hits all alike. `own` is the time of the extraction as
the tool tells it, `process` that of its whole process, which also starts and reads and writes JSON.
`of parsing` is the pages per second beside those of parsing, by `own`, on the same pages: of all
pages, and of the batches from the first to the third quartile.
"""

import argparse
import base64
import glob
import json
import lzma
import os
import shlex
import statistics
import subprocess
import tempfile
from dataclasses import dataclass, field

from pages import pages as made

BATCH = 250


@dataclass
class Tool:
    name: str
    command: list
    pages_max: int | None = None
    own: list = field(default_factory=list)  # of each batch: milliseconds by page
    process: float = 0.0  # seconds of all batches
    empty: int = 0


def tool_of(text):
    name, command = text.split("=", 1)
    return Tool(name, shlex.split(command))


def limited_tool_of(text):
    count, rest = text.split(":", 1)
    tool = tool_of(rest)
    tool.pages_max = int(count)
    return tool


def html_of(record):
    if "html" in record:
        return record["html"].lstrip("\ufeff")
    return base64.b64decode(record["html_b64"]).decode(record["charset"], "replace").lstrip("\ufeff")


def spread(items, count):
    """So many items, at equal distances."""
    if count is None or count >= len(items):
        return items
    return [items[at * len(items) // count] for at in range(count)]


def batches(data, count):
    """Lists of pages with their size in bytes."""
    if not data:
        pages = [{"url": url, "html": html} for url, html in made(count or 1000)]
        yield from cut("made", pages)
        return
    for path in sorted(glob.glob(f"{data}/*.jsonl.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as file:
            pages = [json.loads(line) for line in spread(list(file), count)]
        yield from cut(os.path.basename(path), pages)


def cut(name, pages):
    for start in range(0, len(pages), BATCH):
        batch = []
        for at, record in enumerate(pages[start : start + BATCH], start):
            url = record["url"] if "://" in (record["url"] or "") else None
            page = {"id": f"{name}:{at}", "url": url, "html": html_of(record)}
            batch.append(page)
        yield batch


def answer(tool, batch, core):
    """Runs a tool on a batch."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as found:
        for page in batch:
            line = json.dumps(page, ensure_ascii=False) + "\n"
            given.write(line.encode("utf-8", "replace"))
        given.seek(0)
        process = subprocess.Popen(
            tool.command,
            stdin=given,
            stdout=found,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, f"{tool.name} failed"
        found.seek(0)
        answers = [json.loads(line) for line in found]
    assert [one["id"] for one in answers] == [page["id"] for page in batch], tool.name
    tool.own.append({one["id"]: one["cpu_ms"] for one in answers})
    tool.process += used.ru_utime + used.ru_stime
    tool.empty += sum(not one["text"] for one in answers)


def row(tool, parsing):
    """A line of the table."""
    own = {page: time for batch in tool.own for page, time in batch.items()}
    parsed = {page: time for batch in parsing.own for page, time in batch.items()}
    ratios = [sum(parsed[page] for page in batch) / sum(batch.values()) for batch in tool.own]
    ratio = sum(parsed[page] for page in own) / sum(own.values())
    low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return (
        f"| {tool.name} | {len(own)} | {len(own) * 1000 / sum(own.values()):.0f} "
        f"| {len(own) / tool.process:.0f} | {ratio * 100:.1f} % | {low * 100:.1f} to {high * 100:.1f} % "
        f"| {max(own.values()):.1f} | {tool.empty} |"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tool", dest="tools", action="append", type=tool_of, required=True)
    parser.add_argument("--some", action="append", type=limited_tool_of, default=[])
    parser.add_argument("--data")
    parser.add_argument("--pages", type=int)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    args = parser.parse_args()

    tools = args.tools + args.some
    count = size = 0
    load = [os.getloadavg()[0]]
    work = list(batches(args.data, args.pages))
    total = sum(map(len, work))
    for turn, batch in enumerate(work):
        count += len(batch)
        size += sum(len(page["html"].encode("utf-8", "replace")) for page in batch)
        first = turn % len(tools)
        for tool in tools[first:] + tools[:first]:
            share = tool.pages_max and -(-tool.pages_max * len(batch) // total)
            answer(tool, spread(batch, share), args.core)
        load.append(os.getloadavg()[0])
    print(
        f"{count} pages, {size / count / 1000:.1f} kB each on average; load of the machine"
        f" {min(load):.1f} to {max(load):.1f} with {os.cpu_count()} cores\n"
    )
    print("| tool | pages | pages/CPU-s, own | pages/CPU-s, process | of parsing | quartiles | slowest, ms | empty |")
    print("|---|---|---|---|---|---|---|---|")
    for tool in tools:
        print(row(tool, args.tools[0]))


if __name__ == "__main__":
    main()
