"""What the Python peers share: the main text of a page by trafilatura, its MinHash by datasketch,
and a store in SQLite that names the page of which another one is a copy.

Candidates come from 42 bands of 3 and are confirmed by the Jaccard of all pairs of words, counted
exactly; a Chinese character is a word. The other peers of this bench use the same numbers.
"""

import json, os, re, sqlite3, zlib
import numpy as np
import trafilatura
from datasketch import MinHash, MinHashLSH

BANDS, ROWS, GRAM = 42, 3, 2
THRESHOLD = float(os.environ.get("THRESHOLD", "0.5"))
# Three standard deviations of the Jaccard of two sketches: less alike ones are not counted exactly.
UNSURE = 0.15
BATCH = 256
WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
BLANK = MinHash(num_perm=BANDS * ROWS, hashfunc=int, scheme="affine32")


def read(html, url):
    """(text, its pairs of words as sorted hashes, its sketch): runs in a worker process."""
    text = trafilatura.extract(html, url=url, fast=True, include_comments=False) or ""
    words = WORD.findall(text.lower())
    grams = {" ".join(words[i : i + GRAM]) for i in range(len(words) - GRAM + 1)}
    hashes = np.unique(np.fromiter((zlib.crc32(g.encode()) for g in grams), np.uint32, len(grams)))
    sketch = BLANK.copy()
    sketch.update_batch(hashes)
    return text, hashes, sketch.hashvalues


def jaccard(a, b):
    both = len(np.intersect1d(a, b, assume_unique=True))
    return both / (len(a) + len(b) - both)


class Corpus:
    """One process writes; a commit for each 256 pages and one at the end, and then their lines."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.lines = open(f"{folder}/pages.jsonl", "w")
        self.index = MinHashLSH(num_perm=BANDS * ROWS, params=(BANDS, ROWS))
        self.hashes, self.sketches, self.urls, self.copy_of, self.rows = [], [], [], [], []
        self.base = sqlite3.connect(f"{folder}/pages.sqlite")
        self.base.execute("PRAGMA journal_mode = WAL")
        self.base.execute(
            "CREATE TABLE page (number INTEGER PRIMARY KEY, url TEXT, text TEXT, copy_of INTEGER)"
        )

    def original(self, sketch, hashes):
        """The number of the page of which this is a copy, or none."""
        near = [
            n
            for n in self.index.query(sketch)
            if np.mean(self.sketches[n] == sketch.hashvalues) >= THRESHOLD - UNSURE
        ]
        alike, best = max(((jaccard(hashes, self.hashes[n]), n) for n in near), default=(0, 0))
        if alike < THRESHOLD:
            return None
        return best if self.copy_of[best] is None else self.copy_of[best]

    def add(self, url, page):
        text, hashes, values = page
        number, original = len(self.urls), None
        if len(hashes):
            sketch = MinHash(hashvalues=values, hashfunc=int, scheme="affine32")
            original = self.original(sketch, hashes)
            self.index.insert(number, sketch, check_duplication=False)
        self.urls.append(url)
        self.hashes.append(hashes)
        self.sketches.append(values)
        self.copy_of.append(original)
        self.rows.append((number, url, text, original))
        if len(self.rows) == BATCH:
            self.write()

    def write(self):
        self.base.executemany("INSERT INTO page VALUES (?, ?, ?, ?)", self.rows)
        self.base.commit()
        for _, url, _, original in self.rows:
            of = None if original is None else self.urls[original]
            self.lines.write(json.dumps({"url": url, "copyOf": of}) + "\n")
        self.lines.flush()
        self.rows.clear()

    def close(self):
        self.write()
        self.base.close()
        self.lines.close()
