#!/usr/bin/env python3
"""Tells which pages of one site a deduplicator joined although they are different pages.

  merges.py PAGES.jsonl RUN [--name NAME] [--results FILE] [--worst 20] [--tsv FILE]
  merges.py --table RESULTS

PAGES.jsonl is a file of sites.py. RUN is the folder that `crawl dedup --out` wrote; of it only
clusters.jsonl is needed, lines with "members" and perhaps "canonical" (else the member that comes
first in PAGES.jsonl is it); duplicates.jsonl adds to the examples what found them. --results
appends the figures as a line of JSON, and --table prints the lines of such a file as Markdown.

Similarity is the exact Jaccard of the sets of all runs of three words in the main texts, a Chinese,
Japanese or Korean character being a word. Each member of a cluster is compared with the page that
stands for it on its own site: the canonical one, or if that is on another site, the first member on
its own. Made copies are left out of that. A pair counts as

  editions      `page` is equal: both are one page in two languages, versions or architectures
  two sites     the canonical page is on another site, which stands apart from the questions below
  same title    another page under the same title
  other title   another page under another title; DIFFERENT if the similarity is below 0.8, which
                is what nobody wants: the corpus loses a page

also reported:
  common titles     other pages joined under a title that five or more pages of the site have,
                    below 0.8: "Index" tells nothing
  any two members   the same question for pairs of one cluster and one site, of each 20 at most by
                    chance: chains join pages that were never compared
  pages in mixed clusters    pages that are different from another member of their cluster on their
                    site, among the pairs that were looked at
  editions          of pairs of editions in one language, next to each other in the order of their
                    addresses, the share that is in one cluster, by similarity
  copies            of the made copies (`<id>~<kind>`), the share that is in one cluster with an
                    edition of its original
  astray            made copies that are in a cluster in which no edition of the original is
"""

import argparse, collections, json, multiprocessing, os, random, re
from urllib.parse import urlsplit

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
TOKEN = re.compile(f"[{CJK}]|[^\\W{CJK}]+")
BANDS = {"0.9 to 1": 0.9, "0.8 to 0.9": 0.8, "0.6 to 0.8": 0.6, "0.4 to 0.6": 0.4, "below 0.4": 0.0}
ALIKE = 0.8
COMMON_TITLE_PAGES = 5
PAIRS_PER_CLUSTER = 20
EDITIONS_MAX = 20_000


def shingles(text):
    tokens = TOKEN.findall(text.lower())
    return set(zip(tokens, tokens[1:], tokens[2:])) or {tuple(tokens)}


def jaccard(a, b):
    both = len(a & b)
    return both / (len(a) + len(b) - both)


def band(similarity):
    return next(name for name, least in BANDS.items() if similarity >= least)


class Doc:
    __slots__ = ("id", "url", "host", "title", "page", "language", "at", "made")

    def __init__(self, line, at):
        self.id, self.url, self.at = line["id"], line["url"], at
        self.host, self.page = urlsplit(line["url"]).hostname, line["page"]
        self.title = " ".join(line["title"].lower().split())
        self.language, self.made = line["language"], "~" in line["id"]

    def __lt__(self, other):
        return self.at < other.at


TEXTS = {}  # by identifier; the processes that compare inherit it


def compare(pairs):
    """The similarity of each pair of identifiers."""
    sets = {}
    for key in {k for pair in pairs for k in pair}:
        sets[key] = shingles(TEXTS[key])
    return [jaccard(sets[a], sets[b]) for a, b in pairs]


def similarities(groups):
    """By pair of documents, for groups of pairs that have documents in common."""
    groups = [g for g in groups if g]
    work, chunk = [], []
    for group in groups:
        for start in range(0, len(group), 400):
            chunk += group[start : start + 400]
            if len(chunk) >= 200:
                work.append(chunk)
                chunk = []
    work.append(chunk)
    keys = [[(a.id, b.id) for a, b in chunk] for chunk in work]
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as processes:
        found = processes.map(compare, keys, chunksize=1)
    return {pair: j for chunk, js in zip(work, found) for pair, j in zip(chunk, js)}


def by_host(members):
    out = collections.defaultdict(list)
    for doc in members:
        out[doc.host].append(doc)
    return out


class Cluster:
    def __init__(self, members, canonical):
        self.members, self.canonical = sorted(members), canonical
        self.stood_for, self.sampled = [], []
        rng = random.Random(self.members[0].at)
        for docs in by_host(d for d in self.members if not d.made).values():
            head = canonical if canonical in docs else docs[0]
            self.stood_for += [(d, head) for d in docs if d is not head]
            size = len(docs)
            if size * (size - 1) // 2 <= PAIRS_PER_CLUSTER:
                self.sampled += [(a, b) for i, a in enumerate(docs) for b in docs[:i]]
            else:
                self.sampled += [rng.sample(docs, 2) for _ in range(PAIRS_PER_CLUSTER)]
        self.sampled = [tuple(sorted(pair, reverse=True)) for pair in self.sampled]
        self.abroad = []
        if not canonical.made:
            others = [d for d in self.members if not d.made and d.host != canonical.host]
            self.abroad = [(d, canonical) for d in others]

    def pairs(self):
        return self.stood_for + self.sampled + self.abroad


def kind(a, b):
    if a.page == b.page:
        return "editions"
    if a.host != b.host:
        return "two sites"
    return "same title" if a.title == b.title else "other title"


def different(a, b, similarity):
    return kind(a, b) == "other title" and similarity < ALIKE


def editions(docs):
    """Pairs of pages that are one page of one site in one language."""
    groups = collections.defaultdict(list)
    for doc in docs:
        if not doc.made:
            groups[doc.host, doc.page, doc.language[:2]].append(doc)
    out = []
    for group in groups.values():
        group.sort(key=lambda d: d.url)
        out += [[pair] for pair in zip(group, group[1:])]
    return out if len(out) <= EDITIONS_MAX else random.Random(1).sample(out, EDITIONS_MAX)


def read(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def measure(docs, clusters, found_by):
    """All figures; also the pairs of the first question with their similarity.

    `found_by`: what found a copy, by identifier.
    """
    where = {d.id: c for c in clusters for d in c.members}
    assert len(where) == sum(len(c.members) for c in clusters), "a page is in two clusters"
    aligned = editions(docs.values())
    similar = similarities([c.pairs() for c in clusters] + aligned)
    stood_for = [(a, b, similar[a, b]) for c in clusters for a, b in c.stood_for]
    sampled = [(a, b, similar[a, b]) for c in clusters for a, b in c.sampled]
    bands = collections.defaultdict(collections.Counter)
    abroad = [(*pair, similar[pair]) for c in clusters for pair in c.abroad]
    for a, b, j in stood_for + abroad:
        bands[kind(a, b)][band(j)] += 1
    own = [d for d in docs.values() if not d.made]
    wrong = [(a, b, j) for a, b, j in stood_for if different(a, b, j)]
    titles = collections.defaultdict(set)
    for doc in own:
        titles[doc.host, doc.title].add(doc.page)
    common = [
        (a, b, j)
        for a, b, j in stood_for
        if kind(a, b) == "same title"
        and j < ALIKE
        and len(titles[a.host, a.title]) >= COMMON_TITLE_PAGES
    ]
    mixed = {d.id for a, b, j in stood_for + sampled if different(a, b, j) for d in (a, b)}
    figures = {
        "pages": len(docs),
        "own_pages": len(own),
        "copies": sum(len(c.members) - 1 for c in clusters),
        "largest": max((len(c.members) for c in clusters), default=0),
        "bands": bands,
        "different": len(wrong),
        "different_by_site": collections.Counter(a.host for a, _, _ in wrong).most_common(),
        "different_by_key": collections.Counter(found_by.get(a.id, "") for a, _, _ in wrong),
        "pages_by_site": collections.Counter(d.host for d in own),
        "common_titles": len(common),
        "sampled": len(sampled),
        "sampled_different": sum(different(*row) for row in sampled),
        "mixed": len(mixed),
        "editions": aligned_editions(aligned, similar, where),
        "made": made_copies(docs, where),
    }
    return figures, stood_for + abroad


def aligned_editions(aligned, similar, where):
    out = {name: [0, 0] for name in BANDS}
    for ((a, b),) in aligned:
        row = out[band(similar[a, b])]
        row[0] += a.id in where and where[a.id] is where.get(b.id)
        row[1] += 1
    return out


def made_copies(docs, where):
    """By kind of copy: found, astray, all."""
    out = {}
    for doc in docs.values():
        if not doc.made:
            continue
        row = out.setdefault(doc.id.split("~")[1], [0, 0, 0])
        row[2] += 1
        if cluster := where.get(doc.id):
            pages = {d.page for d in cluster.members if not d.made}
            row[0] += doc.page in pages
            row[1] += doc.page not in pages
    return out


def report(figures, joined, found_by, worst):
    print("{pages} pages, {copies} copies, largest cluster {largest}".format(**figures))
    print(f"\n{'joined, by similarity':24}" + "".join(f"{name:>12}" for name in BANDS))
    for name, counts in sorted(figures["bands"].items()):
        print(f"{name:24}" + "".join(f"{counts[b]:12}" for b in BANDS))
    wrong, pages = figures["different"], figures["own_pages"]
    print(f"\ndifferent pages of one site joined: {wrong} = {wrong / pages:.5f} of all pages")
    for host, count in figures["different_by_site"]:
        print(f"  {count:6}  of {figures['pages_by_site'][host]:6} pages of {host}")
    if found_by:
        by_key = figures["different_by_key"].most_common()
        print("  found by " + ", ".join(f"{key} {n}" for key, n in by_key))
    print(f"under common titles, below {ALIKE}: {figures['common_titles']}")
    print(f"any two members: {figures['sampled_different']} of {figures['sampled']} pairs differ")
    print(f"pages in mixed clusters: {figures['mixed']}")
    of_bands = (f"{name}: {n} of {m}" for name, (n, m) in figures["editions"].items())
    print("editions joined: " + ", ".join(of_bands))
    print("copies found: " + ", ".join(f"{k} {n}/{m}" for k, (n, _, m) in ordered(figures["made"])))
    print("copies astray: " + str(sum(row[1] for row in figures["made"].values())))
    print("\nleast similar of the different pages joined, at most 3 of a site:")
    shown = collections.Counter()
    for a, b, j in sorted((r for r in joined if different(*r)), key=lambda r: r[2]):
        if shown[a.host] < 3 and shown.total() < worst:
            shown[a.host] += 1
            by = found_by.get(a.id, "")
            print(f"  {j:.2f} {by:>13}  {a.title[:60]!r} = {b.title[:60]!r}  {a.url}  {b.url}")


def ordered(made):
    return sorted(made.items(), key=lambda row: (row[0].rstrip("0123456789"), digits(row[0])))


def digits(kind):
    return int(re.sub(r"\D", "", kind) or 0)


def table(path):
    rows = list(read(path))
    kinds = [k for k, _ in ordered(rows[0]["made"])] if rows else []
    head = ["method", "different pages joined", "per 10,000 pages", "any two members, %"]
    head += [
        "in mixed clusters",
        "common titles",
        *(f"other title, {b}" for b in list(BANDS)[1::-1]),
    ]
    lines = []
    for row in rows:
        other = row["bands"].get("other title", {})
        per_pages = f"{1e4 * row['different'] / row['own_pages']:.1f}"
        any_two = share(row["sampled_different"], row["sampled"])
        line = [row["different"], per_pages, any_two, row["mixed"], row["common_titles"]]
        lines.append([row["name"], *line, other.get("0.8 to 0.9", 0), other.get("0.9 to 1", 0)])
    markdown(head, lines)
    lines = [[r["name"], *(share(*band) for band in r["editions"].values())] for r in rows]
    markdown(["editions joined, %", *BANDS], lines)
    lines = []
    for row in rows:
        made = [row["made"][kind] for kind in kinds]
        found = [share(found, all) for found, _, all in made]
        lines.append([row["name"], *found, sum(astray for _, astray, _ in made)])
    markdown(["copies found, %", *kinds, "astray"], lines)


def share(part, all):
    return f"{100 * part / all:.1f}" if all else "–"


def markdown(head, lines):
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for line in lines:
        print("| " + " | ".join(map(str, line)) + " |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="?")
    parser.add_argument("run", nargs="?")
    parser.add_argument("--name", default="crawl")
    parser.add_argument("--results", help="file of JSON lines to append to")
    parser.add_argument("--worst", type=int, default=20)
    parser.add_argument("--tsv", help="file for all pairs, least similar first")
    parser.add_argument("--table", metavar="RESULTS")
    args = parser.parse_args()
    if args.table:
        return table(args.table)
    if not args.run:
        parser.error("PAGES.jsonl and RUN, or --table")
    docs = {}
    for line in read(args.pages):
        docs[line["id"]] = Doc(line, len(docs))
        TEXTS[line["id"]] = line["text"]
    clusters = []
    for line in read(f"{args.run}/clusters.jsonl"):
        members = [docs[k] for k in line["members"]]
        canonical = docs[line["canonical"]] if "canonical" in line else min(members)
        clusters.append(Cluster(members, canonical))
    found_by = {}
    if os.path.exists(f"{args.run}/duplicates.jsonl"):
        found_by = {d["id"]: d["key"] for d in read(f"{args.run}/duplicates.jsonl")}
    figures, joined = measure(docs, clusters, found_by)
    report(figures, joined, found_by, args.worst)
    if args.tsv:
        with open(args.tsv, "w", encoding="utf-8") as file:
            for a, b, j in sorted(joined, key=lambda row: row[2]):
                row = (f"{j:.3f}", kind(a, b), found_by.get(a.id, ""))
                print(*row, a.title, b.title, a.url, b.url, sep="\t", file=file)
    if args.results:
        with open(args.results, "a", encoding="utf-8") as file:
            file.write(json.dumps({"name": args.name, **figures}) + "\n")


if __name__ == "__main__":
    main()
