"""robots.txt by RFC 9309."""

from ._uniqcrawl import Rules, allowed, parse

__all__ = ["Rules", "allowed", "parse"]
