"""What a peer found of the copies that a site has.

Pages that a peer calls copies of each other are a cluster. A copy is found if its cluster has its
original; recall is the share of copies that are. Precision is the share of right lines among those
that call a page a copy. What was not stored was not found.
"""

import collections, json

# Copies that were not found, of which so many are named.
MISSED = 20


def lines(path):
    """What each line of a file says, but a last one that was not written to its end."""
    return (json.loads(line) for line in open(path) if line.endswith("\n"))


class Truth:
    def __init__(self, path):
        pages = list(lines(path))
        self.kind = {page["url"]: page["kind"] for page in pages}
        self.series = {page["url"]: page.get("series") for page in pages}
        self.original = {page["url"]: page["original"] for page in pages if "original" in page}

    def group(self, url):
        return self.original.get(url, url)

    def place(self, url):
        host = lambda url: url.split("/")[2]
        return "same host" if host(url) == host(self.original[url]) else "other host"


def root(parents, url):
    while parents[url] != url:
        url = parents[url]
    return url


def clusters(pages):
    """Lists of URLs; `pages` has a line for each page, with that of which it is a copy or none."""
    parents = {page["url"]: page["url"] for page in pages}
    for page in pages:
        if page["copyOf"] in parents:
            parents[root(parents, page["url"])] = root(parents, page["copyOf"])
    found = collections.defaultdict(list)
    for url in parents:
        found[root(parents, url)].append(url)
    return list(found.values())


def score(truth, pages):
    pages = [page for page in pages if page["url"] in truth.kind]
    cluster = {url: number for number, urls in enumerate(clusters(pages)) for url in urls}
    wrong, called = collections.Counter(), 0
    for page in pages:
        url, of = page["url"], page["copyOf"]
        if of is None:
            continue
        called += 1
        if truth.group(url) != truth.group(of):
            shared = truth.series.get(of) is not None and truth.series.get(of) == truth.series[url]
            wrong[truth.kind[url] if shared else "unrelated"] += 1
    kinds, missed = collections.defaultdict(lambda: [0, 0]), []
    for url, original in truth.original.items():
        found = url in cluster and cluster[url] == cluster.get(original)
        for kind in (truth.kind[url], truth.place(url)):
            kinds[kind][0] += found
            kinds[kind][1] += 1
        if not found:
            missed.append([truth.kind[url], truth.place(url), url, original])
    copies = max(1, len(truth.original))
    return {
        "stored": len(pages),
        "recall": 1 - len(missed) / copies,
        "precision": 1 - sum(wrong.values()) / max(1, called),
        "kinds": {kind: f"{got}/{of}" for kind, (got, of) in kinds.items()},
        "wrong": dict(wrong),
        "missed": missed[:MISSED],
    }


def of_export(folder):
    """The lines of an export of `crawl`, as the peers write them."""
    pages = [{"url": page["url"], "copyOf": None} for page in lines(f"{folder}/documents.jsonl")]
    copies = lines(f"{folder}/duplicates.jsonl")
    return pages + [{"url": page["url"], "copyOf": page["canonical"]} for page in copies]
