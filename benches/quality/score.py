#!/usr/bin/env python3
"""Scores clusters against the corpus they were made from.

  score.py --truth KIND.jsonl --clusters clusters.jsonl

clusters.jsonl: lines with "members": [ids], for clusters of two or more. Prints one line of JSON:
recall      share of the variants (`<id>~<kind>`) that are in one cluster with their original; null
            without variants
pairs       pairs of documents in one cluster; false_pairs: those of different originals
precision   1 - false_pairs / pairs
false_rate  false_pairs / all pairs of different originals; when there are no variants, or they are
            on the hosts of their originals, only pairs on one host count
"""

import argparse, collections, json
from urllib.parse import urlsplit


def base(key):
    return key.split("~")[0]


def pairs(count):
    return count * (count - 1) // 2


def related(keys, *group):
    """Pairs of which the members agree in every given respect."""
    return sum(
        pairs(n) for n in collections.Counter(tuple(g(k) for g in group) for k in keys).values()
    )


def score(hosts, clusters):
    """`hosts`: host by id."""
    where = {}
    for number, members in enumerate(clusters):
        for key in members:
            assert key in hosts, f"no such document: {key}"
            assert where.setdefault(key, number) == number, f"in two clusters: {key}"
    variants = [k for k in hosts if "~" in k]
    found = sum(k in where and where[k] == where.get(base(k)) for k in variants)
    members = [set(c) for c in clusters]
    joined = sum(pairs(len(c)) for c in members)
    false = joined - sum(related(c, base) for c in members)
    host = hosts.get
    if variants and any(hosts[k] != hosts[base(k)] for k in variants):
        unrelated, counted = pairs(len(hosts)) - related(hosts, base), false
    else:
        unrelated = related(hosts, host) - related(hosts, host, base)
        counted = sum(related(c, host) - related(c, host, base) for c in members)
    recall = found / len(variants) if variants else None
    precision = 1 - false / joined if joined else 1.0
    f1 = (
        None
        if recall is None
        else 2 * recall * precision / (recall + precision)
        if recall + precision
        else 0.0
    )
    return {
        "documents": len(hosts),
        "clusters": len(members),
        "largest": max(map(len, members), default=0),
        "recall": recall,
        "precision": precision,
        "f1": f1,
        "pairs": joined,
        "false_pairs": false,
        "false_rate": counted / unrelated if unrelated else 0.0,
    }


def read(path):
    return [json.loads(line) for line in open(path, encoding="utf-8")]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--truth", required=True)
    parser.add_argument("--clusters", required=True)
    args = parser.parse_args()
    hosts = {d["id"]: urlsplit(d["url"]).hostname for d in read(args.truth)}
    print(json.dumps(score(hosts, [c["members"] for c in read(args.clusters)])))


if __name__ == "__main__":
    main()
