#!/usr/bin/env python3
"""The arithmetic of a crawl of many machines: from figures that were measured and some that are assumed, to shards,
workers, nodes, memory, disk, network and money, and to what is full first.

Usage: benches/cluster/sizing.py [--set NAME=VALUE]... [PAGES...]      (1e9 1e10)

Prints Markdown. Every figure can be set; `--list` shows them with where they come from.
"""
import argparse
import math

# name: value, where it comes from
FIGURES = {
    # Measured: see benches/README.md.
    'engine_bytes': (451, 'bytes of the primaries for a document, measured by `cargo bench --bench cluster`'),
    'engine_us': (431, 'processor time of the primaries for an article, us, measured there'),
    'wire_bytes': (3_250, 'bytes between a worker and the cluster for an article, measured there'),
    'page_ms': (0.68, 'processor time of a page in a worker, ms, measured by benches/peers.sh'),
    'place_ms': (0.55, 'processor time of a worker to bring an article to the cluster, ms: what the nodes leave of two cores there'),
    'store_bytes': (7_700, 'bytes of the store of a shard for a page, at 300,000 pages, measured by benches/scale/run'),
    'written_bytes': (13_000, 'bytes written to disk for a page, measured there'),
    'address_bytes': (538, 'bytes of the store of a shard for an address that is known, measured there'),
    # Assumed: they differ by web, and by what a crawl is for.
    'addresses': (3, 'addresses that are known for each page that is visited'),
    'new': (0.7, 'share of pages that are documents; the others are copies'),
    'text_bytes': (2_000, 'bytes of a compressed text with its title'),
    'html_bytes': (25_000, 'bytes of a page as it is sent, compressed'),
    'link_bytes': (190, 'bytes of a link to another shard in its stream'),
    'links_out': (2, 'new links to other shards on a page, once those that were sent lately are left out'),
    'days': (30, 'days in which all is visited'),
    'delay_s': (1, 'seconds between two requests to a host'),
    'worker_cores': (8, 'cores of a worker'),
    'worker_busy': (0.6, 'share of its processor time that a worker is planned to use'),
    'worker_tb': (4, 'disk of a worker, TB'),
    'worker_gbit': (1, 'Gbit/s of a worker'),
    'node_gib': (64, 'memory of a node of the cluster, GiB'),
    'node_full': (0.7, 'share of it that is filled'),
    'replicas': (1, 'copies of each primary'),
    'node_us': (0.6, 'share of one core that a node is planned to use'),
    'worker_price': (0.30, 'dollars an hour of a worker'),
    'node_price': (0.45, 'dollars an hour of a node'),
    'disk_price': (0.08, 'dollars a month of a GB of local disk'),
    'object_price': (0.023, 'dollars a month of a GB of object storage'),
}
GIB, TB, DAY = 2**30, 1e12, 86_400


def short(number):
    """A number with three digits that count."""
    for size, letter in ((1e12, ' trillion'), (1e9, ' billion'), (1e6, ' million')):
        if number >= size:
            return f'{number / size:.3g}{letter}'
    return f'{number:,.0f}' if number >= 100 else f'{number:.3g}'


def near_bytes(documents):
    """Bytes that are read of the fingerprints of the same first 16 bits: 512, and nine of 256 parts of the others."""
    entries = documents / 2**16
    return 11 * (min(entries, 512) + max(entries - 512, 0) * 9 / 256)


def plan(pages, f):
    """All figures of a crawl of so many pages."""
    seconds = f['days'] * DAY
    rate = pages / seconds
    documents = pages * f['new']
    by_cpu = rate * (f['page_ms'] + f['place_ms']) / 1000 / (f['worker_cores'] * f['worker_busy'])
    by_network = rate * f['html_bytes'] * 8 / (f['worker_gbit'] * 1e9 * 0.5)
    disk = pages * f['store_bytes'] + pages * f['addresses'] * f['address_bytes']
    by_disk = disk / (f['worker_tb'] * TB * 0.8)
    limits = {'processor': by_cpu, 'network': by_network, 'disk': by_disk}
    limit = max(limits, key=limits.get)
    workers = max(1, math.ceil(limits[limit]))
    engine = documents * f['engine_bytes']
    by_memory = engine / (f['node_gib'] * GIB * f['node_full'])
    by_time = rate * f['engine_us'] / 1e6 / f['node_us']
    primaries = max(3, math.ceil(max(by_memory, by_time)))
    nodes = primaries * (1 + f['replicas'])
    texts = documents * f['text_bytes']
    months = f['days'] / 30
    money = (workers * f['worker_price'] + nodes * f['node_price']) * f['days'] * 24 + months * (
        disk * f['disk_price'] + texts * f['object_price']) / 1e9
    return {
        'pages a second': short(rate),
        'hosts that are needed at the same time': short(rate * f['delay_s']),
        'workers': f'{workers} ({limit})',
        'shards': f'{next((n for n in (256, 1_024, 4_096) if n >= workers * 8), 16_384):,}',
        'documents': short(documents),
        'memory of the primaries': f'{engine / TB:.3g} TB',
        'primaries and replicas': f'{nodes} ({"memory" if by_memory >= by_time else "processor"})',
        'disk of all shards': f'{disk / TB:.3g} TB, {disk / workers / TB:.2g} TB a worker',
        'written to the disk of a worker': f'{rate / workers * f["written_bytes"] / 1e6:.3g} MB/s',
        'read for a look-up of a fingerprint': f'{near_bytes(documents) / 1e3:.3g} KB',
        'texts': f'{texts / TB:.3g} TB',
        'network from the web': f'{rate * f["html_bytes"] * 8 / 1e9:.3g} Gbit/s',
        'network to and from the cluster': f'{rate * f["wire_bytes"] * 8 / 1e9:.3g} Gbit/s, '
                                           f'{rate * f["wire_bytes"] * 8 / 1e6 / primaries:.3g} Mbit/s a primary',
        'links to other shards': f'{short(rate * f["links_out"])} a second, '
                                 f'{rate * f["links_out"] * f["link_bytes"] * 8 / 1e6:.3g} Mbit/s',
        'dollars': short(money),
        'dollars for a million pages': f'{money / pages * 1e6:.3g}',
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('pages', nargs='*', type=float, default=[1e9, 1e10])
    parser.add_argument('--set', action='append', default=[], metavar='NAME=VALUE')
    parser.add_argument('--list', action='store_true')
    args = parser.parse_args()
    figures = {name: value for name, (value, _) in FIGURES.items()}
    for pair in args.set:
        name, _, value = pair.partition('=')
        if name not in figures:
            parser.error(f'no figure is called {name}: --list shows all')
        figures[name] = float(value)
    if args.list:
        print('| figure | value | what |\n|---|---|---|')
        for name, (_, what) in FIGURES.items():
            print(f'| `{name}` | {figures[name]:g} | {what} |')
        return
    plans = [plan(pages, figures) for pages in args.pages]
    print('| | ' + ' | '.join(f'{short(pages)} pages' for pages in args.pages) + ' |')
    print('|---|' + '---|' * len(plans))
    for name in plans[0]:
        print(f'| {name} | ' + ' | '.join(one[name] for one in plans) + ' |')


if __name__ == '__main__':
    main()
