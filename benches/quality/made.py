#!/usr/bin/env python3
"""Makes a large file of documents whose copies are known, to measure `crawl dedup` as its input grows.

  made.py DOCUMENTS TEXTS.jsonl > FILE.jsonl

Words follow each other as in the texts of TEXTS.jsonl (each word is drawn from those that follow the one before it there),
so that two documents have as many pairs of words in common by chance as two texts of that kind: of pairs made of drawn
words they would have hardly any. 60 to 500 words each. Three in ten are copies of an earlier document in which a share of
the words, 0 to 0.45, is another. The same arguments give the same file.
{"id","url","title","text","popularity","of","rate"}: the last two of a copy, its original and that share.
"""
import json, sys
import numpy as np

ORIGINALS, AT_A_TIME = 20_000, 2_000


def read(path):
    """All words of all texts, one after the other, as numbers; and the words."""
    names, found = {}, []
    with open(path, encoding='utf-8') as lines:
        for line in lines:
            words = json.loads(line)['text'].split()
            found.extend(names.setdefault(word, len(names)) for word in words)
    return np.array(found), list(names)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    documents, (flat, names) = int(sys.argv[1]), read(sys.argv[2])
    rng = np.random.default_rng(11)
    order = np.argsort(flat[:-1], kind='stable')
    after, sorted_words = flat[1:][order], flat[:-1][order]
    starts = np.searchsorted(sorted_words, np.arange(len(names) + 1))
    originals = []
    for base in range(0, documents, AT_A_TIME):
        count = min(AT_A_TIME, documents - base)
        lengths = rng.integers(60, 500, count)
        now = flat[rng.integers(0, len(flat) - 1, count)]
        rows = [now]
        for _ in range(lengths.max() - 1):
            choices = (starts[now + 1] - starts[now]).clip(1)
            drawn = starts[now] + (rng.random(count) * choices).astype(int)
            now = after[drawn.clip(max=len(after) - 1)]
            rows.append(now)
        rows = np.stack(rows, 1)
        for at in range(count):
            number, text, copied = base + at, rows[at, :lengths[at]], {}
            place = int(rng.integers(ORIGINALS))
            if originals and rng.random() < 0.3:
                origin, text = originals[place % len(originals)]
                rate = float(rng.random()) * 0.45
                text = text.copy()
                others = rng.random(len(text)) < rate
                text[others] = flat[rng.integers(0, len(flat), int(others.sum()))]
                copied = {'of': f'd{origin}', 'rate': round(rate, 3)}
            elif len(originals) < ORIGINALS:
                originals.append((number, text))
            else:
                originals[place] = (number, text)
            first = int(rng.integers(0, len(flat) - 8))
            title = flat[first:first + 7]
            site = int(rng.integers(documents // 20 + 2))
            row = {'id': f'd{number}', 'url': f'http://site{site}.example/{number}',
                   'title': ' '.join(names[word] for word in title),
                   'text': ' '.join(names[word] for word in text), 'popularity': int(rng.integers(100))}
            print(json.dumps(row | copied, ensure_ascii=False))


main()
