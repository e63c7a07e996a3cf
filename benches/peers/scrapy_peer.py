#!/usr/bin/env python3
"""Scrapy, trafilatura and datasketch: crawls sites without delay and finds copies.

  scrapy_peer.py FOLDER URL...

Pages are fetched by one process; texts are extracted and sketched by as many as there are cores.
"""

import asyncio, os, sys
from concurrent.futures import ProcessPoolExecutor
from urllib.parse import urldefrag, urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess

from corpus import Corpus, read

FOLDER, SEEDS = sys.argv[1], sys.argv[2:]


class Pages(scrapy.Spider):
    name = "pages"
    start_urls = SEEDS
    allowed_domains = [urlsplit(url).hostname for url in SEEDS]
    # Scrapy knows them too, but a request that it drops costs more.
    seen = set(SEEDS)

    def parse(self, response):
        if urlsplit(response.url).path != "/":
            yield {"url": response.url, "html": response.body}
        links = {urldefrag(link).url for link in response.css("a::attr(href)").getall()}
        links = {response.urljoin(link) for link in links} - self.seen
        self.seen |= links
        yield from map(scrapy.Request, links)


class Store:
    """The pipeline: workers read, this process stores."""

    def open_spider(self):
        self.workers, self.corpus = ProcessPoolExecutor(os.cpu_count()), Corpus(FOLDER)

    async def process_item(self, item):
        loop = asyncio.get_running_loop()
        page = await loop.run_in_executor(self.workers, read, item["html"], item["url"])
        self.corpus.add(item["url"], page)
        return {"url": item["url"]}

    def close_spider(self):
        self.workers.shutdown()
        self.corpus.close()


if __name__ == "__main__":
    process = CrawlerProcess(
        {
            "ROBOTSTXT_OBEY": True,
            "DOWNLOAD_DELAY": 0,
            "AUTOTHROTTLE_ENABLED": False,
            "CONCURRENT_REQUESTS": 64,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
            # It starts as many tasks for each page, of which there is one item.
            "CONCURRENT_ITEMS": 2,
            "COOKIES_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_ENABLED": False,
            "ITEM_PIPELINES": {Store: 1},
        }
    )
    process.crawl(Pages)
    process.start()
