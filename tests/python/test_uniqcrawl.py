"""The wheel, used as a program uses it."""

import inspect
import os
import pathlib
import random
import subprocess
import threading
import time

import pyarrow
import pytest

import uniqcrawl
from uniqcrawl import Deduplicator, robots


def prose(seed, words=120):
    r = random.Random(seed)
    return " ".join("word%d" % r.randrange(5000) for _ in range(words))


def test_a_page_is_read_from_text_and_from_bytes_of_any_charset():
    html = (
        "<html><head><meta charset=gbk><title>潮汐</title></head><body><article><p>%s</p>"
        "<a href='/next'>Next</a></article></body></html>" % ("北码头的高潮在早上六点，晚上六点半再次出现。" * 5)
    )
    from_bytes = uniqcrawl.extract(html.encode("gbk"), url="https://example.org/a/b")
    assert from_bytes.title == "潮汐" and from_bytes.text.startswith("北码头")
    # A str is in no other charset, whatever it says of itself.
    from_text = uniqcrawl.extract(html, "https://example.org/a/b")
    assert (from_text.title, from_text.text) == (from_bytes.title, from_bytes.text)
    assert from_text.links == ["https://example.org/next"]
    assert from_text.language == "zh" and 0 <= from_text.quality <= 1
    assert "潮汐" in repr(from_text)
    head = uniqcrawl.extract(html.replace("<p>", "<h2>Quay</h2><p>"), markdown=True)
    assert "## Quay" in head.text
    empty = uniqcrawl.extract(b"")
    assert (empty.title, empty.text, empty.published, empty.authors) == ("", "", None, [])
    with pytest.raises(ValueError, match="no url"):
        uniqcrawl.extract("x", url="no url")
    with pytest.raises(TypeError):
        uniqcrawl.extract(7)


def test_copies_are_found_one_by_one():
    dedup = Deduplicator()
    text = prose(1)
    assert not dedup.add("first", text)
    copy = dedup.add("second", "Updated at nine. " + text + " Read more.")
    assert copy and copy.duplicate and copy.duplicate_of == "first"
    assert copy.key in ("near_content", "long_sentence", "shingles") and copy.similarity > 0.7
    same = dedup.add(("any", "id"), text, title="T", url="http://a.test/", language="en")
    assert (same.key, same.id, same.distance) == ("exact_content", ("any", "id"), 0)
    other = dedup.add(4, prose(2))
    assert not other and other.duplicate_of is None and other.key == "first"
    assert len(dedup) == 4 and "second" in repr(copy)
    # The most popular copy is kept.
    popular = dedup.add("fifth", text, popularity=9)
    assert not popular
    assert [one.duplicate_of for one in dedup.verdicts()][:3] == ["fifth"] * 3
    assert dedup.settle() == 0


def documents(count):
    for n in range(count):
        copied = n % 3 == 2
        text = prose(n - 1 if copied else n) + (" Printed in town %d." % n if copied else "")
        yield {"id": "d%d" % n, "text": text, "title": None, "extra": 1}


def test_iterables_tables_and_single_documents_give_the_same():
    count = 600
    by_dicts = Deduplicator().run(documents(count))
    assert len(by_dicts) == count
    copies = [one.id for one in by_dicts if one]
    assert copies == ["d%d" % n for n in range(count) if n % 3 == 2]
    assert by_dicts[2].duplicate_of == "d1" and by_dicts[-1].id == "d%d" % (count - 1)
    assert by_dicts.kept() == ["d%d" % n for n in range(count) if n % 3 != 2]
    with pytest.raises(IndexError):
        by_dicts[count]
    rows = list(documents(count))
    table = pyarrow.table({"key": [r["id"] for r in rows], "content": [r["text"] for r in rows]})
    chunked = pyarrow.concat_tables([table.slice(0, 7), table.slice(7)])
    columns = dict(id="key", text="content")
    batch = table.to_batches()[0]
    views = chunked.set_column(1, "content", chunked["content"].cast(pyarrow.string_view()))
    large = chunked.set_column(1, "content", chunked["content"].cast(pyarrow.large_string()))
    reader = pyarrow.RecordBatchReader.from_batches(chunked.schema, iter(chunked.to_batches()))
    wanted = [(one.id, one.duplicate_of, one.key, one.distance) for one in by_dicts]
    for given in (chunked, batch, views, large, reader):
        found = Deduplicator().run(given, **columns)
        assert [(one.id, one.duplicate_of, one.key, one.distance) for one in found] == wanted
    by_tuples = Deduplicator().run((r["id"], r["text"]) for r in rows)
    assert [(one.id, one.duplicate_of, one.key, one.distance) for one in by_tuples] == wanted
    by_texts = Deduplicator().run([r["text"] for r in rows])
    assert [one.id for one in by_texts] == list(range(count)) and by_texts[2].duplicate_of == 1


def test_verdicts_are_a_table():
    verdicts = Deduplicator().run(documents(30))
    table = pyarrow.table(verdicts)
    assert table.schema.names == ["id", "duplicate", "duplicate_of", "key", "distance", "similarity"]
    assert table["duplicate"].to_pylist() == [n % 3 == 2 for n in range(30)]
    assert table["duplicate_of"].to_pylist()[:3] == [None, None, "d1"]
    numbers = pyarrow.table({"id": pyarrow.array([7, 9], pyarrow.uint16()), "text": [prose(1), prose(1)]})
    table = pyarrow.table(Deduplicator().run(numbers))
    assert table["id"].to_pylist() == [7, 9] and table["duplicate_of"].to_pylist() == [None, 7]
    empty = pyarrow.table(Deduplicator().run([]))
    assert empty.num_rows == 0


def test_what_is_wrong_is_told_by_name():
    with pytest.raises(ValueError, match="`wild` is none of seeds, strict"):
        Deduplicator("wild")
    with pytest.raises(ValueError, match="`similarity` is no setting: there are .*similarity_min"):
        Deduplicator(similarity=0.3)
    with pytest.raises(ValueError, match="similarity_min is 7"):
        Deduplicator(similarity_min=7.0)
    with pytest.raises(TypeError):
        Deduplicator(k="three")
    assert Deduplicator("loose", k=3, similarity_min=0.3) is not None
    dedup = Deduplicator()
    with pytest.raises(ValueError, match="document 1 has no `text`: it has .*content"):
        dedup.run([{"text": "a"}, {"content": "b"}])
    with pytest.raises(TypeError, match="`text` of document 0 is a int"):
        dedup.run([{"text": 5}])
    with pytest.raises(TypeError, match="document 0 is a int"):
        dedup.run([5])
    with pytest.raises(TypeError):
        dedup.run(5)
    with pytest.raises(ValueError, match="no column `text`: there are id, content"):
        dedup.run(pyarrow.table({"id": [1], "content": ["x"]}))
    with pytest.raises(TypeError, match="column `text` is of .*cast it to string"):
        dedup.run(pyarrow.table({"text": [1]}))

    def broken():
        yield {"text": prose(1)}
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        dedup.run(broken())
    # A null is an empty text, which is no copy of another one.
    nulls = dedup.run(pyarrow.table({"text": pyarrow.array([None, None], pyarrow.string())}))
    assert not any(nulls)


def test_robots_are_asked():
    text = "User-agent: *\nDisallow: /private\nCrawl-delay: 2.5\nSitemap: https://a.test/map.xml\n"
    rules = robots.parse(text)
    assert rules.allowed("mybot", "https://a.test/x") and not rules.allowed("mybot", "/private/x")
    assert rules.rule("mybot", "/private/x") == "Disallow: /private"
    assert rules.rule("mybot", "/x") is None
    assert rules.crawl_delay("mybot") == 2.5 and rules.sitemaps == ["https://a.test/map.xml"]
    assert not robots.allowed(text.encode(), "mybot", "/private")
    assert robots.parse(b"\xff\xfe\x00").allowed("mybot", "/")


def test_near_texts_have_near_fingerprints():
    text = prose(3)
    bits = lambda a, b: bin(uniqcrawl.simhash(a) ^ uniqcrawl.simhash(b)).count("1")
    assert bits(text, text) == 0
    assert bits(text, text + " more") < 8 < bits(text, prose(4))


def test_other_threads_go_on_while_work_is_done():
    texts = [prose(n, 3000) for n in range(60)]
    ticks = []
    over = threading.Event()

    def tick():
        while not over.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    Deduplicator().run(texts)
    took = time.monotonic() - began
    over.set()
    thread.join()
    inside = [moment for moment in ticks if began <= moment <= began + took]
    assert len(inside) > 5, (len(inside), took)


def test_one_deduplicator_serves_many_threads():
    dedup = Deduplicator()
    failed = []

    def work(number):
        try:
            for n in range(40):
                dedup.add((number, n), prose(n))
        except Exception as error:  # told by the test
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failed and len(dedup) == 160
    verdicts = list(dedup.verdicts())
    assert sum(1 for one in verdicts if not one) == 40
    # Each id stands at its own text.
    assert all(one.duplicate_of is None or one.duplicate_of[1] == one.id[1] for one in verdicts)


CRAWL = os.environ.get("crawl", "")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    if not os.path.exists(CRAWL):
        pytest.fail("%s is missing: build the command first, or name it in CRAWL" % (CRAWL or "crawl"))
    folder = tmp_path_factory.mktemp("store")
    done = subprocess.run([CRAWL, "demo", "--store", folder / "demo", "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "demo"


def test_a_store_is_read_document_by_document_and_as_a_table(store):
    opened = uniqcrawl.open_store(store)
    all = list(opened)
    assert len(opened) == len(all) > 100
    first = all[0]
    assert opened[first.doc_id].url == first.url and first.text and first.title in repr(first)
    several = next(one for one in all if one.copies > 1)
    assert len(opened.copies(several.doc_id)) == several.copies
    assert several.url in opened.copies(several.doc_id)
    table = pyarrow.table(uniqcrawl.open_store(str(store)))
    assert table["url"].to_pylist() == [one.url for one in all]
    assert table["copies"].to_pylist() == [one.copies for one in all]
    assert table.schema.field("copies").type == pyarrow.uint64()
    unknown = "0" * 16 + "-" + "0" * 16
    assert opened.get(unknown) is None and opened.copies(unknown) == []
    with pytest.raises(KeyError):
        opened[unknown]
    with pytest.raises(ValueError, match="`x` is no docId"):
        opened.get("x")


def test_a_store_that_cannot_be_read_is_an_oserror(store, tmp_path):
    with pytest.raises(OSError, match="there is no store in"):
        uniqcrawl.open_store(tmp_path)
    (tmp_path / "store.redb").write_bytes(b"no store at all")
    with pytest.raises(OSError, match="damaged"):
        uniqcrawl.open_store(tmp_path)
    service = subprocess.Popen([CRAWL, "serve", "--store", store, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE)
    service.stdout.readline()
    try:
        with pytest.raises(OSError, match="in use by another process"):
            uniqcrawl.open_store(store)
    finally:
        service.terminate()
        service.wait()


def test_everything_is_described_and_typed():
    folder = pathlib.Path(uniqcrawl.__file__).parent
    assert (folder / "py.typed").exists()
    types = (folder / "__init__.pyi").read_text()
    for name in uniqcrawl.__all__:
        thing = getattr(uniqcrawl, name)
        assert name in types, name
        if callable(thing) or inspect.isclass(thing):
            assert thing.__doc__, name
    for of in (uniqcrawl.Deduplicator, uniqcrawl.Store, uniqcrawl.Extracted, uniqcrawl.Verdict, uniqcrawl.Document):
        for name, _ in inspect.getmembers(of):
            assert name.startswith("_") or "def %s(" % name in types, (of, name)
    assert uniqcrawl.__version__.count(".") == 2
