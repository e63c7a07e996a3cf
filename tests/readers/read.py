"""Reads exports with readers of others, and compares what they find with what the store says.

  read.py GUIDE     in a folder with the exports, `expected.jsonl` and `dropped.jsonl`

Prints a line for each reader. Also runs the Python lines of GUIDE, each block by itself, in which `documents` must
be all documents.
"""

import datetime, glob, gzip, json, pathlib, re, sys

import datasets, duckdb, pandas, polars, pyarrow, pyarrow.dataset, pyarrow.parquet

datasets.disable_progress_bars()
EXPECTED = [json.loads(line) for line in open("expected.jsonl")]
DROPPED = [json.loads(line) for line in open("dropped.jsonl")]
BY_ID = {row["docId"]: row for row in EXPECTED}
UTC = datetime.timezone.utc


def moment(text):
    """A date or moment of JSON as a moment; a day is its first moment in UTC."""
    if not text:
        return None
    found = datetime.datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


TIMES = {"published", "modified", "firstSeen", "lastSeen", "fetched"}


def same(name, found, wanted):
    if name in TIMES:
        if isinstance(found, str):
            found = moment(found)
        if found is not None and found != found:  # what pandas has for none
            found = None
        if hasattr(found, "to_pydatetime"):
            found = found.to_pydatetime()
        return (found.astimezone(UTC) if found else None) == moment(wanted)
    if isinstance(found, float) and found != found:
        found = None
    if hasattr(found, "tolist"):
        found = found.tolist()
    if isinstance(found, float) and isinstance(wanted, (int, float)):
        return abs(found - wanted) < 1e-9
    return found == wanted


def compare(reader, rows, columns=None):
    """Each row of a reader has what the store says of it."""
    rows = list(rows)
    assert [row["docId"] for row in rows] == [row["docId"] for row in EXPECTED], f"{reader}: other documents"
    for row in rows:
        wanted = BY_ID[row["docId"]]
        for name in columns or row:
            expected = wanted.get(name, {"unsettled": False, "unsettledWith": ""}.get(name))
            assert same(name, row[name], expected), f"{reader}, {name}: {row[name]!r} is not {expected!r}"
    return len(rows)


SCHEMA = {
    "docId": "string", "text": "string", "copies": "int64", "popularity": "int64", "unsettled": "bool",
    "firstSeen": "timestamp[ms, tz=UTC]", "published": "timestamp[ms, tz=UTC]", "authors": "list<element: string>",
}
DEEP = {
    "links": "list<element: struct<url: string, text: string, nofollow: bool>>",
    "imageList": "list<element: struct<url: string, alt: string, width: int32, height: int32>>",
    "headers": "struct<contentType: string, lastModified: string, etag: string, contentLanguage: string>",
    "quality": "double", "status": "int64",
}


def type_text(kind):
    return re.sub(r" not null", "", str(kind))


def with_pyarrow():
    for folder in ("corpus", "plain", "shards"):
        table = pyarrow.dataset.dataset(sorted(glob.glob(f"{folder}/documents*.parquet"))).to_table()
        types = SCHEMA | (DEEP if folder == "shards" else {})
        if folder == "shards":
            compare(f"pyarrow {folder}", table.to_pylist())
        else:
            compare(f"pyarrow {folder}", table.to_pylist())
        for name, kind in types.items():
            assert type_text(table.schema.field(name).type) == kind, (name, table.schema.field(name).type)
    file = pyarrow.parquet.ParquetFile("corpus/documents.parquet")
    at = file.schema_arrow.get_field_index("copies")
    statistics = file.metadata.row_group(0).column(at).statistics
    assert statistics.has_min_max and statistics.max == max(row["copies"] for row in EXPECTED)
    codecs = {file.metadata.row_group(0).column(n).compression for n in range(file.metadata.num_columns)}
    assert codecs == {"ZSTD"} and file.metadata.created_by.startswith("uniqcrawl"), codecs
    dropped = pyarrow.parquet.read_table("corpus/duplicates.parquet").to_pylist()
    assert len(dropped) == len(DROPPED) > 0
    for found, wanted in zip(dropped, DROPPED):
        assert found["seen"].astimezone(UTC) == moment(wanted["seen"])
        for name in ("url", "docId", "canonical", "reason", "distance", "similarity", "title"):
            assert found[name] == wanted[name], name
    return table.num_rows


def with_pandas():
    frame = pandas.read_parquet("corpus/documents.parquet")
    rows = frame.to_dict("records")
    compare("pandas parquet", rows, [name for name in frame if name != "authors"])
    assert [list(names) for names in frame["authors"]] == [row["authors"] for row in EXPECTED]
    assert str(frame["firstSeen"].dtype) == "datetime64[ms, UTC]" and str(frame["copies"].dtype) == "int64"
    parts = [pandas.read_json(path, lines=True, dtype=False)
             for path in sorted(glob.glob("lines/documents-*.jsonl.zst"))]
    compare("pandas lines", pandas.concat(parts).to_dict("records"))
    packed = pandas.read_json("gzip/documents.jsonl.gz", lines=True, dtype=False)
    compare("pandas gzip", packed.to_dict("records"))
    cells = pandas.read_csv("cells/documents.csv", keep_default_na=False)
    plain = [name for name in cells if name not in ("authors", "links", "imageList", "headers", "keys")]
    compare("pandas csv", cells.to_dict("records"), plain)
    for row in cells.to_dict("records"):
        for name in ("authors", "links", "imageList", "headers", "keys"):
            assert json.loads(row[name]) == BY_ID[row["docId"]][name], name
    return len(frame)


def with_polars():
    frame = polars.read_parquet("shards/documents-*.parquet")
    compare("polars", frame.to_dicts())
    assert frame.schema["firstSeen"] == polars.Datetime("ms", "UTC"), frame.schema
    assert frame.schema["authors"] == polars.List(polars.String)
    compare("polars lines", polars.read_ndjson("lines/documents-00000.jsonl.zst").to_dicts()
            + polars.read_ndjson(sorted(glob.glob("lines/documents-*.zst"))[1:]).to_dicts())
    return frame.height


def with_duckdb():
    duckdb.sql("set timezone = 'UTC'")
    found = duckdb.sql("select * from 'shards/documents-*.parquet'").to_arrow_table().to_pylist()
    compare("duckdb", found)
    types = dict(duckdb.sql("select column_name, column_type from (describe select * from 'shards/*.parquet')"
                            .replace("'shards/*", "'shards/documents-*")).fetchall())
    assert types["firstSeen"].startswith("TIMESTAMP WITH TIME ZONE"), types
    assert types["links"] == "STRUCT(url VARCHAR, \"text\" VARCHAR, nofollow BOOLEAN)[]", types["links"]
    count = duckdb.sql("select count(*) from 'lines/documents-*.jsonl.zst'").fetchall()[0][0]
    assert count == len(EXPECTED)
    total = duckdb.sql("select sum(copies) from 'cells/documents.csv'").fetchall()[0][0]
    assert total == sum(row["copies"] for row in EXPECTED)
    return len(found)


def with_datasets():
    found = 0
    for folder in ("corpus", "shards", "lines", "gzip", "cells"):
        data = datasets.load_dataset(folder, split="train")
        rows = data.to_list()
        assert [row["docId"] for row in rows] == list(BY_ID), folder
        assert [row["text"] for row in rows] == [row["text"] for row in EXPECTED], folder
        found = len(rows)
    dropped = datasets.load_dataset("corpus", "duplicates", split="train")
    assert len(dropped) == len(DROPPED)
    assert str(datasets.load_dataset("corpus", split="train").features["authors"]).startswith("List(")
    return found


def guide(path):
    """Runs the blocks of the guide that read a corpus."""
    text = pathlib.Path(path).read_text()
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        if "documents =" not in block:
            continue
        assert len([line for line in block.splitlines() if line.strip()]) <= 3, block
        names = {}
        exec(block, names)
        found = names["documents"]
        count = found.num_rows if hasattr(found, "num_rows") else len(found)
        assert count == len(EXPECTED), block
        print(f"guide {block.split()[1].split('.')[0]}: {count} documents")


for name, reader in list(globals().items()):
    if name.startswith("with_"):
        print(f"{name.removeprefix('with_')}: {reader()} documents")
guide(sys.argv[1])
