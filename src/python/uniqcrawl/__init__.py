"""Read pages, find near-duplicates, ask robots.txt files, and read the stores of the crawler uniqcrawl."""

from . import robots
from ._uniqcrawl import (
    Deduplicator,
    Document,
    Documents,
    Extracted,
    Store,
    Verdict,
    Verdicts,
    __version__,
    extract,
    open_store,
    simhash,
)

__all__ = [
    "Deduplicator",
    "Document",
    "Documents",
    "Extracted",
    "Store",
    "Verdict",
    "Verdicts",
    "__version__",
    "extract",
    "open_store",
    "robots",
    "simhash",
]
