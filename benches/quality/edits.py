#!/usr/bin/env python3
"""Makes the corpora of known near-duplicates and of known look-alikes from one base corpus.

  edits.py --base DIR/base/en.dev.jsonl --out DIR/en.dev --seed 1 [--pool FILE ...] [--kinds ...]

Each kind is one file OUT/<kind>.jsonl. The kinds of EDITS hold every original and one variant of
each (id `<id>~<kind>`, on another host), shuffled. `none` holds the originals alone; site03, site10
and site20 hold the originals alone too, each with the boilerplate of the site it was put on, 50
pages a site. Foreign words, sentences and titles come from the pool: by default the other files of
the same base corpus, so never from a document that is itself in the file.

The kinds of TWINS are pages that are written to the template of their site, 200 a site: of 400
words, 60, 80, 90 or 97 % are those of the template, the others the beginning of an original. Each
page has a twin on its site (id `<id>~<kind>`):
  fourth    every fourth word is another one, and the title is
  number    only a number differs, in text and title
  name      only a name differs, which stands after each 25 words and in the title
  added     the twin has another title and a further paragraph, an eighth of its words
  edition   as added, but the title is the same, and of the address only the folder of the version
            differs: the only twins that should be joined
"""

import argparse, glob, hashlib, json, os, random, re

HAN = re.compile("[\u4e00-\u9fff]")
WORDS = {
    "en": "News Sport Weather Markets Culture Travel Video Opinion Local Jobs Shop Events Science Health Games Archive "
    "Letters Photos Podcasts Community Education Property Cars Food Style Music Film Books Radio Maps".split(),
    "zh": "首页 新闻 体育 财经 文化 旅游 视频 评论 本地 招聘 商城 活动 科技 健康 游戏 资料库 来信 图片 音频 社区 教育 房产 汽车 "
    "美食 时尚 音乐 电影 读书 广播 地图".split(),
}
NAMES = {
    "en": "Harbour Northern Evening Summit Valley Meridian Granite Lakeside Pioneer Beacon Orchard Sterling".split(),
    "zh": "海港 北方 晚间 山峰 河谷 子午 磐石 湖畔 先锋 灯塔 果园 银河".split(),
}
LEGAL = {
    "en": [
        "Copyright {year} {name} Media Group. All rights reserved.",
        "Reproduction of the material published by {name} without prior written permission is prohibited.",
        "{name} is not responsible for the content of external sites.",
        "This site uses cookies to measure audience and to remember the settings of {name} readers.",
        "By continuing to browse you agree to the terms of use and to the privacy policy of {name}, last revised in {year}.",
        "Registered office: {number} {name} Street. Company number {long}.",
        "Contact the {name} newsroom at {number}-{long} or use the form on the contact page.",
        "Subscribe to the {name} newsletter and receive the most important stories every morning.",
    ],
    "zh": [
        "版权所有 {year} {name}传媒集团，保留一切权利。",
        "未经{name}网书面授权，任何单位及个人不得转载、摘编或以其他方式使用上述作品。",
        "{name}网不对外部网站的内容负责。",
        "本站使用缓存文件统计访问情况并记录{name}网读者的设置。",
        "继续浏览即表示您同意{name}网于{year}年修订的使用条款和隐私政策。",
        "注册地址：{name}路{number}号，经营许可证编号{long}。",
        "联系{name}网编辑部请拨打{number}-{long}或填写联系页面上的表格。",
        "订阅{name}网每日简报，每天早上获取最重要的新闻。",
    ],
}
ADS = {
    "en": [
        "Save {number} percent this week on {word} from {name}, offer ends Sunday.",
        "Advertisement: {name} {word} now with free delivery on orders over {number} dollars.",
        "Sponsored: discover why {number} thousand readers chose {name} for their {word}.",
        "Download the {name} app today and get {number} days of {word} for free.",
    ],
    "zh": [
        "广告：{name}{word}本周优惠{number}元，周日截止。",
        "推广：下载{name}客户端，免费畅享{number}天{word}。",
        "{name}{word}满{number}元包邮，点击了解详情。",
        "赞助内容：{number}万读者选择{name}{word}的理由。",
    ],
}
STAMPS = {
    "en": "Updated {year}-{month:02}-{day:02} {hour:02}:{minute:02} GMT",
    "zh": "{year}年{month}月{day}日 {hour:02}:{minute:02} 更新",
}
NOTES = {
    "en": [
        "Editor's note: this story was first published by a partner of {name} and has been edited for style.",
        "Editor's note: an earlier version of this article misstated the section in which it appeared; {name} regrets the error.",
        "From the {name} desk: we republish this piece with the kind permission of its author.",
    ],
    "zh": [
        "编者按：本文由{name}网合作媒体首发，编辑时略有改动。",
        "编者按：{name}网转载此文，仅供读者参考。",
        "{name}网编辑部：经作者同意刊发，标题为编者所加。",
    ],
}


class Language:
    """How texts of a language are cut into words and sentences; joined again they give the text."""

    def __init__(self, name, rng):
        self.name, self.rng, self.space = name, rng, "" if name == "zh" else " "

    def words(self, text):
        """English: words with the space after them. Chinese: runs of one to three characters, and
        what stands between."""
        if self.name != "zh":
            return re.findall(r"\S+\s*", text)
        out = []
        for run in re.findall("[\u4e00-\u9fff]+|[^\u4e00-\u9fff]+", text):
            if not HAN.match(run):
                out.append(run)
                continue
            while run:
                size = self.rng.choice((1, 2, 2, 2, 3))
                out.append(run[:size])
                run = run[size:]
        return out

    def sentences(self, text):
        end = (
            "[^。！？!?\n]+[。！？!?”』」）]*"
            if self.name == "zh"
            else r"[^\n]+?(?:[.!?][\"'”’)]*(?=\s)|(?=\n)|$)"
        )
        return [s.strip() for s in re.findall(end, text) if s.strip()]

    def prefix(self, text, length):
        """The first `length` characters, to the next end of a word."""
        if self.name == "zh" or length >= len(text):
            return text[:length]
        return text[:length] + re.match(r"\S*", text[length:]).group()

    def fill(self, templates):
        rng = self.rng
        return rng.choice(templates).format(
            name=rng.choice(NAMES[self.name]),
            word=rng.choice(WORDS[self.name]).lower(),
            number=rng.randint(10, 99),
            long=rng.randint(10**6, 10**7),
            year=rng.randint(2015, 2025),
            month=rng.randint(1, 12),
            day=rng.randint(1, 28),
            hour=rng.randint(0, 23),
            minute=rng.randint(0, 59),
        )


class Pool:
    """Foreign material."""

    def __init__(self, docs, language):
        self.rng, self.language = language.rng, language
        self.titles = [d["title"] for d in docs]
        sample = self.rng.sample(docs, min(1000, len(docs)))
        self.documents = [language.words(d["text"]) for d in sample]
        self.words = [w for d in self.documents for w in d if re.match(r"\w", w)]
        self.sentences = [s for d in docs for s in language.sentences(d["text"]) if len(s) >= 10]

    def run(self, size):
        """That many consecutive words of one document."""
        out = []
        while len(out) < size:
            donor = self.rng.choice(self.documents)
            start = self.rng.randrange(len(donor))
            out += donor[start : start + size - len(out)]
        return out

    def text(self, length):
        """Single sentences of that many characters together."""
        out, have = [], 0
        while have < length:
            out.append(self.rng.choice(self.sentences))
            have += len(out[-1]) + len(self.language.space)
        return out


class Site:
    """A site's fixed head and tail of pages, long enough for any page, which takes prefixes."""

    def __init__(self, number, language, pool, length):
        rng, name = language.rng, NAMES[language.name]
        self.host, self.language = f"site{number}.example", language
        brand = rng.choice(name) + language.space + rng.choice(name)
        nav = f" {rng.choice('|·/>')} ".join(rng.sample(WORDS[language.name], rng.randint(8, 14)))
        links = [rng.choice(pool.titles) for _ in range(8)]
        legal = [language.fill([line]) for line in rng.sample(LEGAL[language.name], 4)]
        self.head = "\n".join([brand, nav, *links[:4], *pool.text(length)])
        self.tail = "\n".join([*links[4:], *legal, *pool.text(length)])

    def wrap(self, text, share):
        half = round(len(text) * share / 2)
        return "\n".join(
            [self.language.prefix(self.head, half), text, self.language.prefix(self.tail, half)]
        )


def stamp(text, lang, pool):
    lines = lang.sentences(text)
    where = text.find(lang.rng.choice(lines)) if lines else 0
    return (
        lang.fill([STAMPS[lang.name]])
        + "\n"
        + text[:where]
        + lang.fill(ADS[lang.name])
        + lang.space
        + text[where:]
    )


def title(text, lang, pool):
    return "\n".join([lang.rng.choice(pool.titles), lang.fill(NOTES[lang.name]), text])


def edit(share):
    """That share of the words is replaced, deleted, or has a word put before it."""

    def apply(text, lang, pool):
        words = lang.words(text)
        for i in lang.rng.sample(range(len(words)), max(1, round(share * len(words)))):
            foreign = lang.rng.choice(pool.words).rstrip() + lang.space
            words[i] = lang.rng.choice(("", foreign, foreign + words[i]))
        return "".join(words)

    return apply


def blocks(text, lang, pool, share=0.08):
    """At the head, in the middle and at the tail: a block replaced, deleted or inserted."""
    words = lang.words(text)
    size = max(1, round(share * len(words)))
    for where in (
        len(words) - size,
        lang.rng.randint(len(words) // 4, max(len(words) // 4, 3 * len(words) // 4 - size)),
        0,
    ):
        operation = lang.rng.choice(("replace", "delete", "insert"))
        new = [] if operation == "delete" else pool.run(size)
        words[where : where if operation == "insert" else where + size] = new
    return "".join(words)


def cut(share):
    return lambda text, lang, pool: "".join(
        (words := lang.words(text))[: max(1, round(share * len(words)))]
    ).rstrip()


def shuffle(text, lang, pool):
    lines = lang.sentences(text)
    lang.rng.shuffle(lines)
    return (lang.space or "").join(lines)


def embed(times):
    """Inside a longer page: foreign sentences of `times` the length, half before and half after."""

    def apply(text, lang, pool):
        around = pool.text(times * len(text))
        half = len(around) // 2
        return lang.space.join(around[:half]) + "\n" + text + "\n" + lang.space.join(around[half:])

    return apply


EDITS = {
    "stamp": stamp, "title": title, "boil10": 0.1, "boil30": 0.3,
    "edit2": edit(0.02), "edit5": edit(0.05), "edit10": edit(0.1), "edit25": edit(0.25),
    "blocks": blocks, "cut70": cut(0.7), "cut50": cut(0.5), "shuffle": shuffle,
    "embed": embed(1), "embed3": embed(3),
}  # fmt: skip
SITES = {"site03": 0.3, "site10": 1.0, "site20": 2.0}
TWINS = ("fourth", "number", "name", "added", "edition")
KINDS = [*EDITS, *SITES, *TWINS, "none"]

TEMPLATE_SHARES = (0.6, 0.8, 0.9, 0.97)
PAGE_WORDS = 400
TWINS_PER_SITE = 100
WORDS_BETWEEN_NAMES = 25


class Template:
    """The words that all pages of a site have, around those of their own."""

    def __init__(self, number, language, pool):
        self.host, self.language = f"manual{number}.example", language
        self.pool, self.share = pool, TEMPLATE_SHARES[number % len(TEMPLATE_SHARES)]
        self.topic = language.rng.choice(pool.titles)
        self.words = []
        while len(self.words) < PAGE_WORDS * self.share:
            self.words += language.words(language.rng.choice(pool.sentences) + language.space)
        self.number = language.rng.randint(100, 9000)

    def name(self):
        if self.language.name == "zh":
            return "".join(self.language.rng.choice(self.pool.words) for _ in range(2))
        parts = (re.sub(r"\W", "", self.language.rng.choice(self.pool.words)) for _ in range(2))
        return "".join(part.capitalize() for part in parts)

    def page(self, doc):
        own = self.language.words(doc["text"])[: round(PAGE_WORDS * (1 - self.share))]
        half = len(self.words) // 2
        return [*self.words[:half], *own, self.language.space, *self.words[half:]]

    def twins(self, doc, kind):
        """(title, text) of the page and of its twin."""
        words, space, rng = self.page(doc), self.language.space, self.language.rng
        if kind == "number":
            self.number += rng.randint(2, 9)
            return [self.numbered(words, self.number + i) for i in range(2)]
        if kind == "name":
            return [self.named(words, self.name()) for _ in range(2)]
        other = rng.choice(self.pool.titles)
        if kind == "fourth":
            changed = list(words)
            for i in range(0, len(words), 4):
                changed[i] = rng.choice(self.pool.words).rstrip() + space
        else:
            where = rng.choice((0, len(words) // 2, len(words)))
            more = ["\n", *self.pool.run(len(words) // 8), "\n"]
            changed = [*words[:where], *more, *words[where:]]
            other = doc["title"] if kind == "edition" else other
        return [(doc["title"], "".join(words)), (other, "".join(changed))]

    def numbered(self, words, number):
        space = self.language.space
        return f"{self.topic} {number}", "".join([f"{number}{space}", *words])

    def named(self, words, name):
        space, step = self.language.space, WORDS_BETWEEN_NAMES
        parts = [words[i : i + step] for i in range(0, len(words), step)]
        function = "函数" if self.language.name == "zh" else " function"
        return name + function, "".join("".join([name, space, *part]) for part in parts)


def make(kind, docs, lang, pool):
    rng = lang.rng
    longest = max(len(d["text"]) for d in docs)
    out = [dict(d) for d in docs]
    if kind in SITES:
        rng.shuffle(out)
        for start in range(0, len(out), 50):
            group = out[start : start + 50]
            length = SITES[kind] * max(len(d["text"]) for d in group)
            site = Site(start // 50, lang, pool, length / 2)
            for doc in group:
                doc["url"] = f"https://{site.host}/{doc['id']}.html"
                doc["text"] = site.wrap(doc["text"], SITES[kind])
    elif kind in EDITS:
        how = EDITS[kind]
        sites = (
            [Site(n, lang, pool, how * longest / 2) for n in range(20)]
            if isinstance(how, float)
            else None
        )
        for doc in docs:
            site = rng.choice(sites) if sites else None
            text = site.wrap(doc["text"], how) if site else how(doc["text"], lang, pool)
            host = site.host if site else f"mirror{rng.randrange(20)}.example"
            new = rng.choice(pool.titles) if kind == "title" else doc["title"]
            key = f"{doc['id']}~{kind}"
            out.append(
                {
                    **doc,
                    "id": key,
                    "url": f"https://{host}/{doc['id']}.html",
                    "title": new,
                    "text": text,
                }
            )
    elif kind in TWINS:
        rng.shuffle(out)
        docs, out = out, []
        for start in range(0, len(docs), TWINS_PER_SITE):
            template = Template(start // TWINS_PER_SITE, lang, pool)
            for doc in docs[start : start + TWINS_PER_SITE]:
                pages = zip(template.twins(doc, kind), (doc["id"], f"{doc['id']}~{kind}"))
                for version, ((name, text), key) in enumerate(pages, 1):
                    path = f"{version}.0/{doc['id']}" if kind == "edition" else key
                    url = f"https://{template.host}/{path}.html"
                    out.append({**doc, "id": key, "url": url, "title": name, "text": text})
    rng.shuffle(out)
    return out


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--pool", nargs="*", help="files of foreign documents")
    parser.add_argument("--kinds", default=",".join(KINDS))
    args = parser.parse_args()

    def read(paths):
        return [json.loads(line) for path in paths for line in open(path, encoding="utf-8")]

    name = args.base.rsplit(".", 2)[0]
    docs = read([args.base])
    foreign = read(
        args.pool
        or sorted(
            p
            for p in glob.glob(f"{name}.*.jsonl")
            if os.path.abspath(p) != os.path.abspath(args.base)
        )
    )
    os.makedirs(args.out, exist_ok=True)
    lang = Language(docs[0]["language"], random.Random(args.seed))
    pool = Pool(foreign, lang)
    for kind in args.kinds.split(","):
        lang.rng.seed(hashlib.sha256(f"{args.seed} {kind}".encode()).digest())
        with open(f"{args.out}/{kind}.jsonl", "w", encoding="utf-8") as file:
            for doc in make(kind, docs, lang, pool):
                file.write(json.dumps(doc, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
