#!/usr/bin/env python3
"""Makes a corpus of real templated sites from the documentation that Debian packages.

  sites.py SPLIT FOLDER [--crawl crawl] [--pages 2500] [--copies 200] [--seed 1]

SPLIT is dev or test: lists of packages (SITES below) that have nothing in common. Packages are
fetched with `apt-get download` into FOLDER/debs, and read there; nothing is installed and root is
not needed. The lists of apt must be there (`apt-get update`); the lists below are those of Debian
12, and a package that apt does not know is left out and named. The first --pages pages by sorted
path are taken of each package, without links, redirections, pages below 200 bytes or above 1 MB,
and pages of which no text is left.

Writes FOLDER/SPLIT.jsonl, one page a line, in an order that the seed chooses:
  id        site and path
  url       http://SITE.test/EDITION/path
  title, text, language    as `crawl extract --jsonl` finds them
  page      site and path without what names an edition: languages, versions and architectures,
            where they stand as a folder or as the ending of a file. Pages of which it is equal are
            editions of one page
and copies on other hosts, of pages of at least 100 words in English or Chinese, --copies of each
kind, with the `page` of the original and the id `<id>~<kind>`:
  edit0 ... edit50    on mirror-SITE.test, same path and title: so many per cent of the words are
                      replaced, deleted, or have a word put before them
  stamp, title, title5    on press.test, as in edits.py; title5 is title with edit5
A file that is there already is left as it is.
"""

import argparse, base64, collections, gzip, json, os, random, re, subprocess, sys, tarfile, threading
import urllib.parse
from edits import Language, Pool, edit, stamp, title

# Site: packages, and folders of the site that they become where there are several.
SITES = {
    "dev": {
        "python3.11-doc": {"": "python3.11-doc"},  # Sphinx
        "python-django-doc": {"": "python-django-doc"},  # Sphinx
        "linux-doc": {"6.1": "linux-doc-6.1", "6.12": "linux-doc-6.12"},  # Sphinx
        "git-doc": {"": "git-doc"},  # AsciiDoc
        "openjdk-17-doc": {"": "openjdk-17-doc"},  # javadoc
        "rust-doc": {"": "rust-doc"},  # rustdoc, mdBook
        "cppreference": {"": "cppreference-doc-en-html"},  # MediaWiki
        "apache2-doc": {"": "apache2-doc"},  # XSLT of its own
        "libboost-doc": {"1.74": "libboost1.74-doc", "1.81": "libboost1.81-doc"},  # BoostBook
        "libstdc++-doc": {"11": "libstdc++-11-doc", "12": "libstdc++-12-doc"},  # doxygen, DocBook
        "qtbase5-doc": {"": "qtbase5-doc-html"},  # QDoc
        "sqlite3-doc": {"": "sqlite3-doc"},  # Tcl of its own
        "postgresql-doc": {"": "postgresql-doc-15"},  # DocBook
        "libreoffice-help": {
            "en-US": "libreoffice-help-en-us",
            "en-GB": "libreoffice-help-en-gb",
            "zh-CN": "libreoffice-help-zh-cn",
        },  # XSLT of its own
        "gimp-help": {
            "en": "gimp-help-en",
            "en_GB": "gimp-help-en-gb",
            "zh_CN": "gimp-help-zh-cn",
        },  # DocBook
        "lilypond-doc": {"": "lilypond-doc-html"},  # texi2any
        "debian-handbook": {"": "debian-handbook"},  # Publican
        "installation-guide": {
            "amd64": "installation-guide-amd64",
            "arm64": "installation-guide-arm64",
            "i386": "installation-guide-i386",
        },  # DocBook
        "exim4-doc": {"": "exim4-doc-html"},  # xfpt
    },
    "test": {
        "gtk-3-doc": {"": "libgtk-3-doc"},  # gtk-doc
        "glib-doc": {"": "libglib2.0-doc"},  # gtk-doc
        "cairo-doc": {"": "libcairo2-doc"},  # gtk-doc
        "gtk-4-doc": {"": "libgtk-4-doc"},  # gi-docgen
        "pango-doc": {"": "libpango1.0-doc"},  # gi-docgen
        "scipy-doc": {"": "python-scipy-doc"},  # numpydoc
        "pandas-doc": {"": "python-pandas-doc"},  # numpydoc
        "sympy-doc": {"": "python-sympy-doc"},  # Sphinx
        "llvm-doc": {"16": "llvm-16-doc", "19": "llvm-19-doc"},  # Sphinx
        "nodejs-doc": {"": "nodejs-doc"},  # of its own
        "octave-doc": {"": "octave-doc"},  # texi2any, doxygen
        "maxima-doc": {"": "maxima-doc"},  # texi2any
        "zsh-doc": {"": "zsh-doc"},  # texi2any
        "erlang-doc": {"": "erlang-doc"},  # erl_docgen
        "eigen-doc": {"": "libeigen3-doc"},  # doxygen
        "sfml-doc": {"": "libsfml-doc"},  # doxygen
        "mbedtls-doc": {"": "libmbedtls-doc"},  # doxygen
        "wx-doc": {"": "wx3.2-doc"},  # doxygen
        "gtkmm-doc": {"3.0": "libgtkmm-3.0-doc", "4.0": "libgtkmm-4.0-doc"},  # doxygen
        "glibmm-doc": {"2.4": "libglibmm-2.4-doc", "2.68": "libglibmm-2.68-doc"},  # doxygen
        "sdl-doc": {"": "libsdl2-doc"},  # ikiwiki, doxygen
        "ghc-doc": {"": "ghc-doc"},  # Haddock, Sphinx
        "scala-doc": {"": "scala-doc"},  # Scaladoc
        "groovy-doc": {"": "groovy-doc"},  # Groovydoc, javadoc
        "fastutil-doc": {"": "libfastutil-java-doc"},  # javadoc
        "poi-doc": {"": "libapache-poi-java-doc"},  # javadoc
        "openjfx-doc": {"": "libopenjfx-java-doc"},  # javadoc
        "qtdeclarative5-doc": {"": "qtdeclarative5-doc-html"},  # QDoc
        "ada-manual": {
            "2012": "ada-reference-manual-2012",
            "2020": "ada-reference-manual-2020",
        },  # of its own
        "rt-doc": {"rt4": "rt4-doc-html", "rt5": "rt5-doc-html"},  # Perl's POD
        "db-doc": {"": "db5.3-doc"},  # DocBook, javadoc
        "fp-docs": {"": "fp-docs-3.2.2"},  # fpdoc, TeX4ht
        "racket-doc": {"": "racket-doc"},  # Scribble
        "batteries-doc": {"": "libbatteries-ocaml-doc"},  # ocamldoc
        "js-of-ocaml-doc": {"": "libjs-of-ocaml-doc"},  # odoc
        "swig-doc": {"": "swig4.0-doc"},  # by hand
        "asciidoctor-doc": {"": "asciidoctor-doc"},  # YARD
        "debian-reference": {
            "en": "debian-reference-en",
            "zh-CN": "debian-reference-zh-cn",
            "ja": "debian-reference-ja",
        },  # DocBook
        "maint-guide": {
            "en": "maint-guide",
            "zh-CN": "maint-guide-zh-cn",
            "zh-TW": "maint-guide-zh-tw",
            "ja": "maint-guide-ja",
        },  # DocBook
        "debian-faq": {
            "en": "debian-faq",
            "zh-CN": "debian-faq-zh-cn",
            "ja": "debian-faq-ja",
            "ko": "debian-faq-ko",
        },  # DocBook
        # The template of a site of dev, in scripts that few packages have.
        "libreoffice-help": {"zh-TW": "libreoffice-help-zh-tw", "ja": "libreoffice-help-ja"},
    },
}
EDITS = (0, 1, 3, 5, 8, 10, 15, 20, 25, 35, 50)
PRESS = ("stamp", "title", "title5")
KINDS = [f"edit{share}" for share in EDITS] + list(PRESS)
PAGE_BYTES = (200, 1_000_000)
COPY_WORDS_MIN = 100

HTML = re.compile(r"\.x?html?(\.[a-z]{2}([-._][\w-]+)*)?(\.gz)?$")
REDIRECTION = re.compile(rb"""<meta[^>]*http-equiv\s*=\s*["']?refresh""", re.I)
NOSCRIPT = re.compile(rb"(?is)<noscript\b.*?</noscript\s*>")
# ISO 639-1, which leaves out folders such as `io`, and the regions that stand behind it.
LANGUAGES = (
    "ar bg bn ca cs da de el en eo es et eu fa fi fr gl he hi hr hu id it ja km ko lt lv ms nb nl nn "
    "no pl pt ro ru sk sl sr sv ta th tr uk vi zh"
).split()
LANGUAGE = re.compile(rf"({'|'.join(LANGUAGES)})([-_@.][A-Za-z]{{2,8}})*")
ENDING = re.compile(
    rf"\.({'|'.join(LANGUAGES)})([-_][A-Za-z]+)?(?=\.x?html?$)|(?<=html)\.[a-z]{{2}}([-._][\w-]+)*$"
)


def fetch(packages, folder):
    """Files of the packages; fetches those that are not there."""
    os.makedirs(folder, exist_ok=True)

    def files():
        names = sorted(os.listdir(folder))
        return {n.split("_")[0]: f"{folder}/{n}" for n in names if n.endswith(".deb")}

    missing = [p for p in packages if p not in files()]
    if missing:
        known = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True).stdout
        known = set(known.split())
        if not known:
            sys.exit("apt has no lists: run `apt-get update` as root, once")
        asked = [p for p in missing if p in known]
        print(f"fetching {len(asked)} packages", file=sys.stderr)
        done = subprocess.run(["apt-get", "download", "-q", *asked], cwd=folder, stdout=2)
        if done.returncode and not any(p in files() for p in asked):
            sys.exit("apt-get download failed: run `apt-get update` as root, and try again")
    have = files()
    for package in packages:
        if package not in have:
            print(f"left out, apt has no such package: {package}", file=sys.stderr)
    return {p: have[p] for p in packages if p in have}


def members(package):
    """The regular files of a package that look like pages, as (file, member)."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as tool:
        with tarfile.open(fileobj=tool.stdout, mode="r|") as tar:
            for member in tar:
                if member.isreg() and HTML.search(member.name.lower()):
                    yield tar, member
        tool.stdout.read()


def pages(package, count):
    """The first pages of a package by path, as (path below their common folder, bytes)."""
    sizes = {m.name: m.size for _, m in members(package)}  # names begin with "./"
    least, most = PAGE_BYTES
    usable = [n for n, size in sizes.items() if size <= most and (size >= least or ".gz" in n)]
    chosen = set(sorted(usable)[:count])
    root = os.path.commonpath([os.path.dirname(n[2:]) for n in sizes]) if sizes else ""
    for tar, member in members(package):
        if member.name not in chosen:
            continue
        data = tar.extractfile(member).read()
        if member.name.endswith(".gz"):
            data = gzip.decompress(data)
        leads_on = REDIRECTION.search(NOSCRIPT.sub(b"", data[:4096]))
        if least <= len(data) <= most and not leads_on:
            yield member.name[2 + len(root) :].strip("/").removesuffix(".gz"), data


def work(path, edition):
    """What is left of a path when the names of languages and versions are taken away."""
    if edition:
        path = path.replace(edition, "")
    folders, name = path.split("/")[:-1], path.split("/")[-1]
    kept = [f for f in folders if f and not LANGUAGE.fullmatch(f)]
    return "/".join([*kept, ENDING.sub("", name)])


def extract(crawl, site, edition, found):
    """The pages of one package as documents."""
    tool = subprocess.Popen(
        [crawl, "extract", "--jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def feed():
        with tool.stdin as pipe:
            for path, data in found:
                path = "/".join(filter(None, [edition, path]))
                url = f"http://{site}.test/" + urllib.parse.quote(path).replace("~", "%7E")
                line = {"id": path, "url": url, "html_base64": base64.b64encode(data).decode()}
                pipe.write(json.dumps(line) + "\n")

    threading.Thread(target=feed, daemon=True).start()
    for line in tool.stdout:
        page = json.loads(line)
        if not (page.get("text") or "").strip():
            continue
        yield {
            "id": f"{site}/{page['id']}".replace("~", "%7E"),
            "url": page["url"],
            "title": page["title"] or "",
            "text": page["text"],
            "language": page["lang"] or "",
            "page": f"{site}/{work(page['id'], edition)}",
        }
    if tool.wait():
        sys.exit(f"{crawl} extract failed")


def copies(docs, count, seed):
    """Copies of each kind on other hosts, each of another page."""
    out = []
    for name, share in (("en", 0.8), ("zh", 0.2)):
        lang = Language(name, random.Random(seed))
        rng = lang.rng
        own = [
            d
            for d in docs
            if d["language"].startswith(name) and len(lang.words(d["text"])) >= COPY_WORDS_MIN
        ]
        if len(own) < 2:
            continue
        each = min(round(share * count), len(own) // len(KINDS))
        chosen = rng.sample(own, each * len(KINDS))
        pool = Pool(rng.sample(own, min(2000, len(own))), lang)
        for at, kind in enumerate(KINDS):
            for doc in chosen[at * each : (at + 1) * each]:
                out.append(copy(doc, kind, lang, pool))
    return out


def copy(doc, kind, lang, pool):
    text, name = doc["text"], doc["title"]
    parts = urllib.parse.urlsplit(doc["url"])
    url = f"http://mirror-{parts.hostname}{parts.path}"
    if kind in PRESS:
        url = f"http://press{lang.rng.randrange(20)}.test/{lang.rng.randrange(10**9)}.html"
    if kind == "stamp":
        text = stamp(text, lang, pool)
    elif kind.startswith("title"):
        share = int(kind[5:] or 0)
        text = title(edit(share / 100)(text, lang, pool) if share else text, lang, pool)
        name = lang.rng.choice(pool.titles)
    elif kind != "edit0":
        text = edit(int(kind[4:]) / 100)(text, lang, pool)
    return {**doc, "id": f"{doc['id']}~{kind}", "url": url, "title": name, "text": text}


def write(path, docs):
    with open(f"{path}.partial", "w", encoding="utf-8") as file:
        for doc in docs:
            file.write(json.dumps(doc, ensure_ascii=False) + "\n")
    os.replace(f"{path}.partial", path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("split", choices=sorted(SITES))
    parser.add_argument("folder")
    parser.add_argument("--crawl", default="crawl", help="the binary that extracts main texts")
    parser.add_argument("--pages", type=int, default=2500, help="pages of a package at most")
    parser.add_argument("--copies", type=int, default=200, help="copies of each kind")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    out = f"{args.folder}/{args.split}.jsonl"
    if os.path.exists(out):
        return
    sites = SITES[args.split]
    wanted = [package for packages in sites.values() for package in packages.values()]
    have = fetch(wanted, f"{args.folder}/debs")
    docs = []
    for site, packages in sites.items():
        counts = collections.Counter()
        for edition, package in packages.items():
            if package in have:
                found = pages(have[package], args.pages)
                new = list(extract(args.crawl, site, edition, found))
                counts[edition] = len(new)
                docs += new
        print(site, dict(counts), file=sys.stderr)
    assert len({d["id"] for d in docs}) == len(docs), "an identifier stands for two pages"
    docs += copies(docs, args.copies, args.seed)
    random.Random(args.seed).shuffle(docs)
    write(out, docs)


if __name__ == "__main__":
    main()
