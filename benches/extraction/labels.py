"""Labelled segments: what `crawl extract --jsonl --why` cuts a page into, and how much of each
segment belongs to the main text according to a labelled set. Used by train.py.

A set tells either the whole main text of a page, or snippets that an extractor must find and
snippets that it must not find. A whole text is aligned with the segments:

- The longest common subsequence of the page's tokens and the true ones says where the text lies.
  A segment of four tokens or more that is in it at least by half counts as far as runs of four
  tokens of it occur in the truth.
- What stands elsewhere, as where a set has put the parts of a text in another order, counts as far
  as such runs are left in the truth. So a teaser that repeats the text counts once.
- A shorter segment counts if it lies in the subsequence as a whole and the longer segments
  around it do not say otherwise.

Snippets label the segments that hold them, or that they hold, and no others: these weigh nothing.
"""

import collections
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import threading
from dataclasses import dataclass
from urllib.parse import urlparse

import numpy as np

# Tokens that make a run; segments below it tell too little to be looked up by runs.
RUN = 4
# Tokens that are aligned, for the sake of time and memory.
TOKENS_MAX = 60_000
# How near a longer segment must be to decide on a short one.
NEAR = 3
# All segments of a page weigh at most so much: a page with little main text is mostly boilerplate,
# all alike, and would weigh more than any other.
PAGE_WEIGHT_MAX = 6.0
# Added to the tokens of a segment and to those of a text, so that short ones count as well.
SEGMENT_TOKENS, TEXT_TOKENS = 2, 50
# The segments that one snippet labels as main text weigh so much together.
SNIPPET_WEIGHT = 0.25
# Snippets shorter than this are found only in segments, not segments in them.
SNIPPET_CHARS = 15


@dataclass
class Page:
    """A labelled page."""

    set: str
    id: str
    host: str
    kind: str
    language: str
    truth: dict
    segments: list[str]
    features: np.ndarray  # a row of bytes for each segment
    labels: np.ndarray  # 0 to 1
    weights: np.ndarray  # 0 where nothing is known
    whole: np.ndarray  # the bytes from which the kind of the page is told


def load_scorer(path, data):
    """The scorer as a module.

    It must have `DEV`, the names of the sets; `load(set)`, their records with `id`, `url`, `type`,
    `lang` and `gt`, where `gt` has either `text` or `with` and `without`; `html_of(record)`;
    `tok(text)`, the tokens of a text; `norm(text)`; `lcs_idx(a, b)`, the places in `a` of a longest
    common subsequence; `score_page(set, record, text)`, `aggregate(set, scores)` as (F1,
    precision, recall), and `pagef1(set, score)`.
    """
    os.environ["EXTRACT_DATA"] = data
    spec = importlib.util.spec_from_file_location("scorer", path)
    scorer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scorer)
    return scorer


def number(name):
    """A number that depends on nothing but a name."""
    return int.from_bytes(hashlib.md5(name.encode()).digest()[:4], "big")


def host(record):
    """The registrable part of a page's host: pages of one site must not be in several folds.

    Records without address have an identifier that begins with the host and a hyphen.
    """
    name = urlparse(record["url"]).netloc or record["url"].rsplit("::", 1)[-1].split("-")[0]
    parts = re.sub(r"^www\.", "", name.split(":")[0]).split(".")
    short = len(parts) > 2 and len(parts[-2]) <= 3  # as in .co.uk
    return ".".join(parts[-3:] if short else parts[-2:]) or record["id"]


def read(crawl, scorer, pages=None):
    """The names of the features, and the labelled pages; with `pages`, so many of each set."""
    names = subprocess.run([crawl, "extract", "--feature-names"], stdout=subprocess.PIPE, check=True)
    names = names.stdout.decode().split()
    found = []
    for name in scorer.DEV:
        records = scorer.load(name)
        if pages:
            records = sorted(records, key=lambda record: number(record["id"]))[:pages]
        found += [
            labelled(scorer, name, record, why, len(names))
            for record, why in judged(crawl, scorer, records)
        ]
    return names, found


def judged(crawl, scorer, records):
    """Each record with what the program says of its segments."""
    process = subprocess.Popen(
        [crawl, "extract", "--jsonl", "--why"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )

    def feed():
        for record in records:
            url = record["url"] if "://" in record["url"] else None
            line = {"id": record["id"], "url": url, "html": scorer.html_of(record)}
            line = json.dumps(line, ensure_ascii=False) + "\n"
            process.stdin.write(line.encode("utf-8", "replace"))
        process.stdin.close()

    threading.Thread(target=feed, daemon=True).start()
    for record, line in zip(records, process.stdout, strict=True):
        answer = json.loads(line)
        assert answer["id"] == record["id"], "the answers come in order"
        yield record, answer["why"]
    assert process.wait() == 0


def labelled(scorer, name, record, why, width):
    blocks = why["blocks"]
    segments = [block["text"] for block in blocks]
    features = b"".join(bytes.fromhex(block["features"]) for block in blocks)
    truth = record["gt"]
    if "with" in truth and not truth.get("text"):
        labels, weights = of_snippets(scorer, segments, truth)
    else:
        labels, weights = of_text(scorer, segments, truth.get("text") or "")
    return Page(
        set=name,
        id=record["id"],
        host=host(record),
        kind=record["type"],
        language=record["lang"],
        truth=truth,
        segments=segments,
        features=np.frombuffer(features, np.uint8).reshape(len(blocks), width),
        labels=labels,
        weights=weights,
        whole=np.frombuffer(bytes.fromhex(why["features"]), np.uint8),
    )


def covered(tokens, runs):
    """The share of the tokens that are in a run of which some are left."""
    inside = np.zeros(len(tokens), bool)
    for at in range(len(tokens) - RUN + 1):
        if runs.get(tuple(tokens[at : at + RUN]), 0) > 0:
            inside[at : at + RUN] = True
    return inside.mean()


def use_up(tokens, runs):
    """Takes the runs of a segment away from those that are left."""
    for at in range(len(tokens) - RUN + 1):
        run = tuple(tokens[at : at + RUN])
        if run in runs:
            runs[run] -= 1


def of_text(scorer, segments, truth):
    """Labels and weights of the segments of a page whose main text is known."""
    true = scorer.tok(truth)
    tokens = [scorer.tok(segment) for segment in segments]
    labels = np.zeros(len(segments))
    weights = np.array([len(own) + SEGMENT_TOKENS for own in tokens], float)
    if not true:
        return labels, weights / TEXT_TOKENS
    common = shares_in_order(scorer, tokens, true)
    runs = collections.Counter(tuple(true[at : at + RUN]) for at in range(len(true) - RUN + 1))
    joined = f" {' '.join(true)} "

    in_place = [at for at, own in enumerate(tokens) if len(own) >= RUN and common[at] >= 0.5]
    for at in in_place:
        share = covered(tokens[at], runs)
        labels[at] = max(share, common[at]) if share > 0.3 else share
    for at in in_place:
        use_up(tokens[at], runs)
    for at, own in enumerate(tokens):
        if len(own) >= RUN and common[at] < 0.5:
            labels[at] = covered(own, runs)
            if labels[at] > 0.5:
                use_up(own, runs)
        elif 0 < len(own) < RUN:
            labels[at] = common[at] > 0.99 and f" {' '.join(own)} " in joined
    drop_strays(tokens, labels)

    weights /= len(true) + TEXT_TOKENS
    return labels, weights * min(1.0, PAGE_WEIGHT_MAX / weights.sum()) if segments else weights


def shares_in_order(scorer, tokens, true):
    """The share of each segment's tokens in the longest common subsequence of page and truth."""
    flat = [token for own in tokens for token in own]
    inside = np.zeros(len(flat), bool)
    inside[list(scorer.lcs_idx(flat[:TOKENS_MAX], true))] = True
    shares, at = np.zeros(len(tokens)), 0
    for place, own in enumerate(tokens):
        if own:
            shares[place] = inside[at : at + len(own)].mean()
        at += len(own)
    return shares


def drop_strays(tokens, labels):
    """A short segment is no main text if longer ones are near and none of them is."""
    for at, own in enumerate(tokens):
        if 0 < len(own) < RUN and labels[at]:
            around = range(max(0, at - NEAR), min(len(tokens), at + NEAR + 1))
            near = [labels[other] for other in around if len(tokens[other]) >= RUN]
            if near and max(near) < 0.3:
                labels[at] = 0


def of_snippets(scorer, segments, truth):
    """Labels and weights of the segments of a page of which snippets are known."""
    texts = [scorer.norm(segment) for segment in segments]
    labels, weights = np.zeros(len(segments)), np.zeros(len(segments))
    for label, key in ((1, "with"), (0, "without")):
        for snippet in filter(None, map(scorer.norm, truth[key])):
            hits = [at for at, text in enumerate(texts) if snippet in text]
            hits = hits or [
                at for at, text in enumerate(texts) if len(text) >= SNIPPET_CHARS and text in snippet
            ]
            for at in hits:
                if not weights[at] or labels[at] == label:
                    labels[at] = label
                    weights[at] += SNIPPET_WEIGHT / (len(hits) if label else 1)
    return labels, weights
