#!/usr/bin/env python3
"""Answers pages as `crawl extract --jsonl` does, by extractors in Python.

  python_rivals.py resiliparse|trafilatura

A line {"id","url","html"} is answered with {"id","text","cpu_ms"}, where `cpu_ms` is the processor
time of the page alone.
"""

import json
import sys
import time


def extractor(name):
    if name == "resiliparse":
        from resiliparse.extract.html2text import extract_plain_text

        return lambda page: extract_plain_text(page["html"], main_content=True)
    if name == "trafilatura":
        import trafilatura

        return lambda page: trafilatura.extract(
            page["html"], url=page["url"], include_comments=False
        )
    sys.exit(__doc__)


def main():
    extract = extractor(sys.argv[1] if len(sys.argv) == 2 else "")
    for line in sys.stdin.buffer:
        page = json.loads(line)
        started = time.thread_time()
        try:
            text = extract(page) or ""
        except Exception as error:  # an empty text counts as one that was not found
            print(f"{page['id']}: {error}", file=sys.stderr)
            text = ""
        cpu_ms = (time.thread_time() - started) * 1000
        print(json.dumps({"id": page["id"], "text": text, "cpu_ms": cpu_ms}), flush=True)


if __name__ == "__main__":
    main()
