#!/usr/bin/env python3
"""Crawlee, trafilatura and datasketch: crawls sites without delay and finds copies.

  crawlee_peer.py FOLDER URL...

Pages are fetched by one process; texts are extracted and sketched by as many as there are cores.
The queue of requests is in memory, which is the faster of its two.
"""

import asyncio, logging, os, sys
from concurrent.futures import ProcessPoolExecutor
from urllib.parse import urldefrag, urljoin, urlsplit

from crawlee import ConcurrencySettings
from crawlee.configuration import Configuration
from crawlee.crawlers import ParselCrawler
from crawlee.storage_clients import MemoryStorageClient

from corpus import Corpus, read


async def main(folder, seeds):
    workers, corpus = ProcessPoolExecutor(os.cpu_count()), Corpus(folder)
    loop = asyncio.get_running_loop()
    # Its own way to follow links makes a request of each before it looks whether that is known.
    seen, hosts = set(seeds), {urlsplit(url).hostname for url in seeds}
    crawler = ParselCrawler(
        # Else it waits for a machine that is less busy.
        configuration=Configuration(max_used_cpu_ratio=1.0, max_event_loop_delay="PT10S"),
        storage_client=MemoryStorageClient(),
        concurrency_settings=ConcurrencySettings(
            min_concurrency=64, desired_concurrency=64, max_concurrency=64
        ),
        respect_robots_txt_file=True,
        use_session_pool=False,
        configure_logging=False,
    )

    @crawler.router.default_handler
    async def page(context):
        url = context.request.url
        if urlsplit(url).path != "/":
            html = await context.http_response.read()
            corpus.add(url, await loop.run_in_executor(workers, read, html, url))
        links = {urldefrag(link).url for link in context.selector.css("a::attr(href)").getall()}
        links = {urljoin(url, link) for link in links} - seen
        seen.update(links)
        await context.add_requests([link for link in links if urlsplit(link).hostname in hosts])

    await crawler.run(seeds)
    workers.shutdown()
    corpus.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
