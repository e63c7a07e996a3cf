#!/usr/bin/env python3
"""`crawl dedup` beside other projects on the same Parquet files, in one run: documents a second, memory, quality.

  parquet.py DOCUMENTS TEXTS.jsonl [--crawl target/release/crawl] [--memory "1 GiB"] [--rounds 1] [RIVAL ...]

Makes DOCUMENTS documents with known copies by quality/made.py from the words of TEXTS.jsonl, in shards of 100,000
rows (zstd), and keeps them in a folder beside the work of this machine. RIVALs are names of quality/rivals.py, for which
its packages must be installed.

Recall: of the documents made from an earlier one with so many words changed, those that are in its cluster. Precision:
of the documents that are in a cluster with the first of it, those that were made from the same one. Times are of whole
processes; the peak is the resident memory of the process and what it starts.
"""

import argparse, collections, json, os, pathlib, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).parent
SHARD = 100_000
BANDS = [(0.0, 0.1), (0.1, 0.2), (0.2, 0.3)]


def make(documents, texts, folder):
    """Shards, and the truth: for each copy its original and the share of words that are others."""
    import pyarrow as pa, pyarrow.parquet as pq

    truth = folder / "truth.jsonl"
    shards = folder / "shards"
    if truth.exists():
        return shards, truth
    shards.mkdir(parents=True, exist_ok=True)
    made = subprocess.Popen(
        [sys.executable, HERE / "quality/made.py", str(documents), texts], stdout=subprocess.PIPE, text=True
    )
    rows, count = [], 0
    with open(folder / "truth.partial", "w") as file:
        for line in made.stdout:
            row = json.loads(line)
            if "of" in row:
                file.write(json.dumps({"id": row["id"], "of": row.pop("of"), "rate": row.pop("rate")}) + "\n")
            rows.append(row)
            if len(rows) == SHARD:
                pq.write_table(pa.Table.from_pylist(rows), shards / f"{count:05}.parquet", compression="zstd")
                rows, count = [], count + 1
    if rows:
        pq.write_table(pa.Table.from_pylist(rows), shards / f"{count:05}.parquet", compression="zstd")
    if made.wait():
        sys.exit("made.py failed")
    os.rename(folder / "truth.partial", truth)
    return shards, truth


def judge(clusters, truth):
    of, rates = {}, {}
    for row in map(json.loads, open(truth)):
        of[row["id"]], rates[row["id"]] = row["of"], row["rate"]

    def root(key):
        while key in of:
            key = of[key]
        return key

    where, right, joined = {}, 0, 0
    for number, row in enumerate(map(json.loads, open(clusters))):
        first = row["members"][0]
        for member in row["members"]:
            where[member] = number
            if member != first:
                joined += 1
                right += root(member) == root(first)
    found = collections.Counter()
    all_ = collections.Counter()
    for key, rate in rates.items():
        for band in BANDS:
            if band[0] <= rate < band[1]:
                all_[band] += 1
                found[band] += key in where and where[key] == where.get(of[key])
    recall = "  ".join(f"{found[b] / max(all_[b], 1):.3f}" for b in BANDS)
    return f"{recall}     {right / max(joined, 1):.4f}"


def measure(name, command, documents, clusters, truth):
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    error = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - start
    if status:
        print(f"{name:16} failed: {error.strip().splitlines()[-1:]}")
        return
    cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    print(f"{name:16} {documents / seconds:9.0f} {documents / cpu:9.0f} {peak:8.0f}   {judge(clusters, truth)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=int)
    parser.add_argument("texts")
    parser.add_argument("rivals", nargs="*")
    parser.add_argument("--crawl", default="target/release/crawl")
    parser.add_argument("--memory", default="1 GiB")
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_intermixed_args()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    folder = cache / f"uniqcrawl-parquet-{args.documents}"
    shards, truth = make(args.documents, args.texts, folder)
    print(f"{args.documents} documents, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{'':16} {'docs/s':>9} {'a CPU s':>9} {'MiB':>8}   recall <0.1  <0.2   <0.3  precision")
    with tempfile.TemporaryDirectory() as work:
        for _ in range(args.rounds):
            out = f"{work}/out"
            command = [args.crawl, "dedup", shards, "--out", out, "--quiet", "--memory", args.memory]
            measure("crawl", command, args.documents, f"{out}/clusters.jsonl", truth)
            for rival in args.rivals:
                found = f"{work}/{rival}.jsonl"
                command = [sys.executable, HERE / "quality/rivals.py", rival, shards, found]
                measure(rival, command, args.documents, found, truth)


main()
