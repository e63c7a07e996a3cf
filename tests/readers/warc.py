"""Reads WARC files with warcio and FastWARC, and indexes with cdxj-indexer, which know nothing of us.

warc.py check FOLDER EXPECTED: every file passes `warcio check`, both readers find the same records,
whose payloads are those of EXPECTED (JSON: kind -> count, "payloads": URL -> SHA-256 of the page as
it was before its codings), and every index is what cdxj-indexer makes of its file.

warc.py count FILE...: prints JSON: kind -> count, by warcio.

warc.py texts FILE: prints JSON: "texts": URL -> SHA-256 of its conversion record, by FastWARC, and
"fields": how many have a metadata record with JSON that refers to them.
"""

import hashlib
import io
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator


def whole_files(folder):
    files = sorted(path for path in Path(folder).iterdir() if ".warc" in path.name)
    assert files, f"{folder} has no file"
    return files


def by_warcio(files):
    kinds, payloads, ids = Counter(), {}, set()
    for path in files:
        with open(path, "rb") as stream:
            for record in ArchiveIterator(stream):
                kinds[record.rec_type] += 1
                identifier = record.rec_headers["WARC-Record-ID"]
                assert identifier not in ids, f"{identifier} twice"
                ids.add(identifier)
                if record.rec_type == "response":
                    url = record.rec_headers["WARC-Target-URI"]
                    payload = record.content_stream().read()
                    if record.http_headers.get_statuscode() == "200":
                        payloads[url] = hashlib.sha256(payload).hexdigest()
    return kinds, payloads


def by_fastwarc(files):
    kinds = Counter()
    for path in files:
        with open(path, "rb") as stream:
            for record in FastIterator(stream, verify_digests=True):
                kinds[str(record.record_type)] += 1
    return kinds


def checked(path):
    command = [Path(sys.executable).with_name("warcio"), "check", path]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, f"{path}: {found.stdout}{found.stderr}"


def lines(text):
    rows = [line.split(" ", 2) for line in text.splitlines() if line]
    return [(key, moment, json.loads(facts)) for key, moment, facts in rows]


def indexed(path):
    """Our index beside a file, and that of cdxj-indexer."""
    ours = lines(path.with_name(path.name.split(".warc")[0] + ".cdxj").read_text())
    command = [Path(sys.executable).with_name("cdxj-indexer"), "--sort", path]
    theirs = lines(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    # It writes resources of the crawl itself as well, which are no pages.
    theirs = [row for row in theirs if not row[2]["url"].startswith("urn:")]
    # Lines of one moment and key stand in any order.
    ours, theirs = (sorted(rows, key=lambda row: (*row[:2], row[2]["offset"])) for rows in (ours, theirs))
    assert len(ours) == len(theirs), f"{len(ours)} lines, not {len(theirs)}"
    for our, their in zip(ours, theirs):
        assert our[:2] == their[:2], f"{our} {their}"
        for name in ["url", "status", "digest", "length", "offset", "filename"]:
            assert our[2].get(name) == their[2].get(name), f"{name}: {our} {their}"
    return len(ours)


def check(folder, expected):
    expected = json.loads(Path(expected).read_text())
    files = whole_files(folder)
    gzipped = [path for path in files if path.suffix == ".gz"]
    for path in gzipped:
        checked(path)
    kinds, payloads = by_warcio(gzipped or [unzstd(path) for path in files])
    fast = by_fastwarc(files)
    assert kinds == fast, f"{kinds} {fast}"
    wanted = expected.pop("payloads")
    for url, digest in wanted.items():
        assert payloads.get(url) == digest, f"{url}: {payloads.get(url)} is not {digest}"
    for kind, count in expected.items():
        assert kinds[kind] == count, f"{kinds[kind]} of {kind}, not {count}"
    rows = sum(indexed(path) for path in gzipped)
    if gzipped:
        assert rows == kinds["response"] + kinds["revisit"], f"{rows} lines"
    print(json.dumps({"files": len(files), "records": sum(kinds.values()), "lines": rows}))


def unzstd(path):
    """warcio reads no zstd: plain beside it."""
    import zstandard

    plain = path.with_suffix("")
    with open(path, "rb") as packed, open(plain, "wb") as out:
        reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        out.write(reader.read())
    checked(plain)
    return plain


def count(files):
    kinds, _ = by_warcio([Path(file) for file in files])
    print(json.dumps(kinds))


def texts(path):
    texts, ids, fields = {}, {}, 0
    with open(path, "rb") as stream:
        for record in FastIterator(stream, verify_digests=True, parse_http=False):
            kind = str(record.record_type)
            url = record.headers.get("WARC-Target-URI")
            if kind == "conversion":
                assert record.headers["Content-Type"].startswith("text/plain")
                texts[url] = hashlib.sha256(record.reader.read()).hexdigest()
                ids[record.headers["WARC-Record-ID"]] = url
            elif kind == "metadata":
                said = json.loads(record.reader.read())
                assert ids[record.headers["WARC-Refers-To"]] == said["url"] == url
                assert said["docId"] and "text" not in said
                fields += 1
    print(json.dumps({"texts": texts, "fields": fields}))


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    commands = {"check": check, "count": lambda *files: count(files), "texts": texts}
    commands[command](*arguments)
