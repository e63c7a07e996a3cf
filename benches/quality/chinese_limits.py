#!/usr/bin/env python3
"""Measures what Chinese news texts are like by the rules of the filters: where the limits of Chinese come from.

  chinese_limits.py FOLDER      (FOLDER/base/zh-*.jsonl as corpora.py makes them)

Words are cut by jieba 0.42.1, as `crawl` cuts them; prints for each quantity the percentiles over all texts.
"""

import glob, json, sys

import jieba

jieba.setLogLevel(60)
STOPS = "。！？；”’…」』）.?!\""
HAN = lambda c: "\u4e00" <= c <= "\u9fff"
USUAL = set("的 了 在 是 和 不 也 有 与 对 就 为".split())


def words_of(text):
    words = []
    for word in jieba.cut(text):
        if HAN(word[0]) or word.isalnum():
            words.append(word)
        else:
            words.extend(c for c in word if not c.isspace())
    return words


def repeated(items):
    seen, chars = set(), 0
    for item in items:
        if item in seen:
            chars += len(item)
        seen.add(item)
    return chars


def run_share(words, n, total):
    counts = {}
    for i in range(len(words) - n + 1):
        key = " ".join(words[i : i + n])
        counts[key] = counts.get(key, 0) + 1
    return max((len(k) * c for k, c in counts.items()), default=0) / total


def repeated_runs(words, n, total):
    seen, chars, i = set(), 0, 0
    while i + n <= len(words):
        key = "".join(words[i : i + n])
        if key in seen:
            chars, i = chars + len(key), i + n
        else:
            seen.add(key)
            i += 1
    return chars / total


def measures(text):
    words = words_of(text)
    lines = [line for line in text.split("\n") if line.strip()]
    real = [w for w in words if any(c.isalnum() for c in w)]
    out = {
        "words": len(real),
        "word length": sum(map(len, real)) / max(len(real), 1),
        "words with a letter": sum(any(c.isalpha() for c in w) for w in words) / max(len(words), 1),
        "usual words": len(USUAL & set(words)),
        "whole lines": sum(line.rstrip()[-1] in STOPS for line in lines) / len(lines),
        "lines of 15 characters": sum(len(line) <= 15 for line in lines) / len(lines),
        "characters in repeated lines": repeated(lines) / len(text),
        "line breaks a word": text.count("\n") / max(len(words), 1),
        "sentences": sum(text.count(c) for c in "。！？"),
    }
    for n in (2, 3, 4):
        out[f"most frequent run of {n}"] = run_share(words, n, len(text))
    for n in range(5, 11):
        out[f"repeated runs of {n}"] = repeated_runs(words, n, len(text))
    return out


def main(folder):
    found = {}
    for path in sorted(glob.glob(f"{folder}/base/zh-*.jsonl")):
        for line in open(path, encoding="utf-8"):
            text = json.loads(line)["text"]
            if text.strip():
                for name, value in measures(text).items():
                    found.setdefault(name, []).append(value)
    shares = (0, 0.1, 1, 5, 50, 95, 99, 99.9, 100)
    print("texts:", len(found["words"]))
    print(f"{'':30}" + "".join(f"{share:>9}%" for share in shares))
    for name, values in found.items():
        values.sort()
        at = [values[min(int(share / 100 * len(values)), len(values) - 1)] for share in shares]
        print(f"{name:30}" + "".join(f"{value:10.3f}" for value in at))


main(sys.argv[1])
