class Rules:
    """The rules of a robots.txt (RFC 9309)."""

    def allowed(self, agent: str, url: str) -> bool: ...
    def rule(self, agent: str, url: str) -> str | None: ...
    def crawl_delay(self, agent: str) -> float | None: ...
    @property
    def sitemaps(self) -> list[str]: ...

def parse(body: str | bytes) -> Rules:
    """Read a robots.txt."""

def allowed(body: str | bytes, agent: str, url: str) -> bool:
    """Tell whether a robots.txt lets a crawler with this product token fetch a URL or path."""
