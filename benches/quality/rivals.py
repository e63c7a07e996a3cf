#!/usr/bin/env python3
"""Clusters of near-duplicates by other projects, on the same file.

  rivals.py NAME IN.jsonl|FOLDER OUT-clusters.jsonl     (FOLDER of Parquet files with id and text)

datatrove          its pipeline: signature, buckets, cluster; 14 bands of 8, word 5-grams by its
                   tokenizer of the language
datasketch         MinHashLSH, 128 permutations, threshold 0.7, 5-grams of words split at spaces
datasketch-tuned   the same at threshold 0.5 with 2-grams
rensa              RMinHash and RMinHashLSH, 128 permutations, threshold 0.5, 2-grams of words split
                   at spaces
rensa-checked      its RMinHashDeduplicator, which checks what the index proposes, at 0.5 with the
                   same 2-grams
rensa-exact80      its RMinHashLSH, 128 permutations in 32 bands, 3-grams of words, a Chinese, Japanese
rensa-exact70      or Korean character being one; joined if the Jaccard of all 3-grams, counted
                   exactly, is at least 0.8 or 0.7
rensa-fineweb      the parameters of the FineWeb corpus, without a check: 14 bands of 8, 5-grams of
                   such words
rensa-readme       as its README shows: RMinHashDeduplicator, threshold 0.8, single words
text-dedup         its embed_func with the defaults of its command line: threshold 0.7, 250
                   permutations, word 5-grams
gaoya              MinHashStringIndex, threshold 0.5, 42 bands of 3, single words (the example of
                   its documentation)
gaoya-char         the same with character 4-grams at threshold 0.5, 50 bands of 4
simhash            Simhash and SimhashIndex, k=3, the features of its default (four characters)

NAME:chars puts a space around every Chinese character first, for projects that look for words
between spaces. Documents joined by any chain of matches are one cluster. Prints one line of JSON:
seconds, documents/s and the peak memory, with reading and cutting into words, without the import of
the project.
"""

import argparse, collections, functools, importlib, json, os, re, resource, struct, tempfile, time
from merges import TOKEN, jaccard, shingles

HAN = re.compile("([\u4e00-\u9fff])")


class Union:
    def __init__(self, size):
        self.parent = list(range(size))

    def find(self, i):
        while self.parent[i] != i:
            self.parent[i] = i = self.parent[self.parent[i]]
        return i

    def join(self, a, b):
        self.parent[self.find(b)] = self.find(a)


def ngrams(text, size):
    words = text.lower().split()
    return {" ".join(words[i : i + size]) for i in range(max(1, len(words) - size + 1))}


def datatrove(texts, language, join):
    from datatrove.data import Document
    from datatrove.pipeline.dedup import (
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.utils.typeshelper import Languages

    config = MinhashConfig(n_grams=5, num_buckets=14, hashes_per_bucket=8)
    code = Languages.mandarin_chinese if language == "zh" else Languages.english
    with tempfile.TemporaryDirectory() as folder:
        docs = (Document(text=t, id=str(i)) for i, t in enumerate(texts))
        MinhashDedupSignature(f"{folder}/signatures", config, code).run(docs, 0, 1)
        for bucket in range(14):
            MinhashDedupBuckets(f"{folder}/signatures", f"{folder}/buckets", config=config).run(
                None, bucket, 14
            )
        MinhashDedupCluster(
            f"{folder}/buckets", f"{folder}/clusters", config, save_cluster_id=True
        ).run(None, 0, 1)
        first, file = {}, f"{folder}/clusters/000000.clusters"
        for document, cluster in struct.iter_unpack(
            "<2I", open(file, "rb").read() if os.path.exists(file) else b""
        ):
            join(first.setdefault(cluster, document), document)


def datasketch(texts, language, join, size=5, threshold=0.7):
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=threshold, num_perm=128)
    for i, text in enumerate(texts):
        sketch = MinHash(num_perm=128)
        sketch.update_batch([g.encode() for g in ngrams(text, size)])
        for other in index.query(sketch):
            join(other, i)
        index.insert(i, sketch, check_duplication=False)


def rensa(texts, language, join):
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=0.5, num_perm=128, num_bands=32)
    for i, text in enumerate(texts):
        sketch = RMinHash(num_perm=128, seed=42)
        sketch.update(list(ngrams(text, 2)))
        for other in index.query(sketch):
            join(other, i)
        index.insert(i, sketch)


def rensa_checked(
    texts, language, join, features=lambda text: list(ngrams(text, 2)), threshold=0.5
):
    from rensa import RMinHash, RMinHashDeduplicator

    index = RMinHashDeduplicator(threshold=threshold, num_perm=128, use_lsh=True)
    for i, text in enumerate(texts):
        sketch = RMinHash(num_perm=128, seed=42)
        sketch.update(features(text))
        for other in index.get_duplicates(sketch):
            join(int(other), i)
        index.add(str(i), sketch)


def rensa_exact(texts, language, join, threshold):
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=threshold, num_perm=128, num_bands=32)
    joined = Union(len(texts))  # members of one cluster need no look at each other
    hashes = functools.lru_cache(maxsize=20_000)(lambda i: {hash(g) for g in shingles(texts[i])})
    sketches = []
    for i in range(len(texts)):
        sketch = RMinHash(num_perm=128, seed=42)
        sketch.update([" ".join(gram) for gram in shingles(texts[i])])
        for other in index.query(sketch):
            # Four standard deviations of the estimate: hardly one in 10,000 is lost.
            likely = sketch.jaccard(sketches[other]) > threshold - 0.16
            if likely and joined.find(other) != joined.find(i):
                if jaccard(hashes(other), hashes(i)) >= threshold:
                    joined.join(other, i)
                    join(other, i)
        index.insert(i, sketch)
        sketches.append(sketch)


def rensa_fineweb(texts, language, join):
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=0.7, num_perm=112, num_bands=14)
    for i, text in enumerate(texts):
        words = TOKEN.findall(text.lower())
        sketch = RMinHash(num_perm=112, seed=42)
        sketch.update([" ".join(words[j : j + 5]) for j in range(max(1, len(words) - 4))])
        for other in index.query(sketch):
            join(other, i)
        index.insert(i, sketch)


def text_dedup(texts, language, join):
    import numpy as np
    from text_dedup.minhash import RNG, embed_func
    from text_dedup.utils import optimal_param, sha1_hash

    bands, rows = optimal_param(0.7, 250, false_positive_weight=0.5, false_negative_weight=0.5)
    prime, top = np.uint64((1 << 61) - 1), np.uint32((1 << 32) - 1)
    permutations = (
        RNG.randint(1, prime, size=250, dtype=np.uint64),
        RNG.randint(0, prime, size=250, dtype=np.uint64),
    )
    ranges = [(i * rows, (i + 1) * rows) for i in range(bands)]
    tables = [{} for _ in range(bands)]
    for i, text in enumerate(texts):
        row = embed_func(
            text, i, num_perm=250, ngram_size=5, min_length=5, hashranges=ranges,
            permutations=permutations, hash_func=lambda data: sha1_hash(data, d=32),
            dtype=np.uint64, max_hash=top, modulo_prime=prime,
        )  # fmt: skip
        for table, key in zip(tables, row["__signatures__"]):
            join(table.setdefault(key, i), i)


def gaoya(texts, language, join, analyzer="word", size=1, bands=42, rows=3):
    from gaoya.minhash import MinHashStringIndex

    index = MinHashStringIndex(32, 0.5, bands, rows, None, analyzer, True, (size, size))
    for i, text in enumerate(texts):
        for other in index.query(text):
            join(other, i)
        index.insert_document(i, text)


def simhash(texts, language, join):
    from simhash import Simhash, SimhashIndex

    index, blank = SimhashIndex([], k=3), Simhash("")
    for i, text in enumerate(texts):
        value = Simhash(
            blank._tokenize(text)
        )  # as Simhash(text), which fails on features seen 256 times with NumPy 2
        for other in index.get_near_dups(value):
            join(int(other), i)
        index.add(str(i), value)


METHODS = {
    "datatrove": datatrove,
    "datasketch": datasketch,
    "datasketch-tuned": lambda *args: datasketch(*args, size=2, threshold=0.5),
    "rensa": rensa,
    "rensa-checked": rensa_checked,
    "rensa-readme": lambda *args: rensa_checked(*args, features=str.split, threshold=0.8),
    "rensa-exact80": lambda *args: rensa_exact(*args, threshold=0.8),
    "rensa-exact70": lambda *args: rensa_exact(*args, threshold=0.7),
    "rensa-fineweb": rensa_fineweb,
    "text-dedup": text_dedup,
    "gaoya": gaoya,
    "gaoya-char": lambda *args: gaoya(*args, analyzer="char", size=4, bands=50, rows=4),
    "simhash": simhash,
}
IMPORTS = {"text-dedup": "text_dedup.minhash", "datatrove": "datatrove.pipeline.dedup"}


def read(path):
    """Documents of a file of lines, or of a folder of Parquet files in the order of their names."""
    if not os.path.isdir(path):
        return [json.loads(line) for line in open(path, encoding="utf-8")]
    import pyarrow.parquet

    names = sorted(name for name in os.listdir(path) if name.endswith(".parquet"))
    tables = [pyarrow.parquet.read_table(f"{path}/{n}", columns=["id", "text"]) for n in names]
    return [row for table in tables for row in table.to_pylist()]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name")
    parser.add_argument("input")
    parser.add_argument("clusters")
    args = parser.parse_args()
    name, _, chars = args.name.partition(":")
    importlib.import_module(IMPORTS.get(name, name.split("-")[0]))

    start, cpu = time.time(), time.process_time()
    docs = read(args.input)
    texts = [HAN.sub(r" \1 ", d["text"]) if chars else d["text"] for d in docs]
    union = Union(len(docs))
    METHODS[name](texts, docs[0].get("language", "en"), union.join)
    clusters = collections.defaultdict(list)
    for i, doc in enumerate(docs):
        clusters[union.find(i)].append(doc["id"])
    with open(args.clusters, "w", encoding="utf-8") as file:
        for members in clusters.values():
            if len(members) > 1:
                file.write(json.dumps({"members": members}) + "\n")
    seconds, cpu = time.time() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    speed = round(len(docs) / seconds)
    line = {
        "method": args.name,
        "documents/s": speed,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "peak_mb": peak,
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
