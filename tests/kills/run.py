#!/usr/bin/env python3
"""Kills every command that writes, again and again, and looks at what is left.

  tests/kills/run.py [--crawl target/release/crawl] [--rounds 100] [--seed 1]

A web of three hosts runs on loopback. In each round one command is started and killed with SIGKILL after a random
time: crawl and recrawl, the same with WARC files, rebuild from these, serve with a client that sends articles, dedup, export,
expire, import, store backup, compact and merge. After each round:

  crawl, serve, expire, import   `crawl check` finds nothing wrong; each article that was acknowledged has its document
  dedup, export          the files of the output are all old, or all new, or there are none; a kill between two names
                         leaves no manifest, and the next run makes the set whole
  export in shards       is killed and run again until it ends, and then is that of one that was not killed, byte for byte
  backup                 the newest backup is whole, and is restored to a sound store
  compact                the store is sound and has the same documents, and no more bytes
  merge                  the store is sound; the one that comes to its end is that of a merge that was never killed
  warc                   the store is sound; a crawl that was killed until it came to its end has the documents of one that
                         never was, and a store that is rebuilt from its files has them, too
  rebuild                the store is sound; the one that comes to its end has the documents of the crawl

A crawl or an import that was killed until it came to its end has the same documents as one that was never killed; so
has a dedup the same files. stdlib only;
exits with 1 at the first fault, and leaves its folder.
"""

import argparse, contextlib, hashlib, http.client, http.server, json, os, pathlib, random, shutil, subprocess
import sys, tempfile, threading, time, urllib.parse

HOSTS, PAGES = 3, 150
KILLS_MAX = 300
KINDS = ("crawl", "serve", "dedup", "export", "expire", "import", "backup", "compact", "merge",
         "warc", "rebuild")
WORDS = [hashlib.md5(str(n).encode()).hexdigest()[: 4 + n % 6] for n in range(900)]


def text(number, edits=0):
    """A text of 150 words; two of one number differ in `edits` of them."""
    words = random.Random(number).choices(WORDS, k=150)
    for n in range(edits):
        words[20 + 13 * n] = f"edited{number}x{n}"
    return " ".join(words)


class Pages(http.server.BaseHTTPRequestHandler):
    """Host n has its own pages, the third one edited copies of those of the first."""

    def do_GET(self):
        host = int(self.headers["Host"].split(":")[0].split(".")[-1])
        number = self.path.removeprefix("/page/")
        if self.path == "/":
            body = "".join(f'<p><a href="/page/{n}">page {n}</a>' for n in range(PAGES))
        elif number.isdigit() and int(number) < PAGES:
            n = int(number)
            body = text(n, 3) if host == 13 else text(n + 1000 * host)
            body = f"<h1>Report {n} on {WORDS[n]} {WORDS[n + 9]}</h1><p>{body}</p>"
        else:
            with contextlib.suppress(ConnectionError):
                self.send_error(404)
            return
        data = f"<html><title>{self.path} {host}</title><body>{body}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # whoever asked was killed
            self.wfile.write(data)

    def log_message(self, *_):
        pass


class Loop:
    def __init__(self, crawl, folder, seed):
        self.crawl, self.folder, self.random = crawl, folder, random.Random(seed)
        self.acknowledged, self.sent, self.times = {}, 0, {}
        self.sources, self.merged = [], None
        servers = [http.server.ThreadingHTTPServer((f"127.78.0.{10 + n}", 0), Pages) for n in range(1, HOSTS + 1)]
        self.seeds = folder / "seeds.txt"
        self.seeds.write_text("".join("http://%s:%d/\n" % s.server_address for s in servers))
        for server in servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
        self.lines = folder / "lines.jsonl"
        with self.lines.open("w") as file:
            for n in range(4000):
                line = {"id": str(n), "title": "", "text": text(n // 2 + 5000, n % 2 * 3)}
                file.write(json.dumps(line) + "\n")
                if n % 500 == 499:
                    file.write("no document\n")

    def command(self, *args):
        return [self.crawl, *map(str, args)]

    def crawling(self, store):
        return self.command("--seeds", self.seeds, "--store", store, "--allow-private", "--delay", "5ms", "--quiet")

    def killed(self, kind, args):
        """Starts a command and kills it at a moment of the time that it takes. Returns whether it was still running."""
        start = time.monotonic()
        child = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            child.wait(self.random.uniform(0.0, 1.1 * self.times.get(kind, 2.0)))
            self.times.setdefault(kind, time.monotonic() - start)
            return False
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            return True

    def run(self, *args):
        done = subprocess.run(self.command(*args), capture_output=True, text=True)
        if done.returncode:
            fail(f"crawl {' '.join(map(str, args))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def check(self, store):
        if (store / "store.redb").exists():
            self.run("check", "--store", store)

    def serve(self, store, longest):
        """A service is sent articles until it is killed; what it answered is remembered."""
        child = subprocess.Popen(self.command("serve", "--store", store, "--listen", "127.0.0.1:0"),
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        end = threading.Timer(self.random.uniform(0.1, longest), child.kill)
        end.start()
        line = child.stdout.readline()
        try:
            address = urllib.parse.urlsplit(line.split()[-1]) if line.strip() else None
            while address and child.poll() is None:
                connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
                name, self.sent = f"n{self.sent}", self.sent + 1
                number = self.random.randrange(400) + 9000
                body = {"nid": name, "title": "", "url": f"http://sent.example/{name}",
                        "content": text(number, self.random.randrange(3))}
                connection.request("POST", "/v1/articles", json.dumps(body) + "\n",
                                   {"Content-Type": "application/x-ndjson"})
                answer = json.loads(connection.getresponse().read().splitlines()[0])
                self.acknowledged[name] = answer["docId"]
        except (OSError, http.client.HTTPException, IndexError, ValueError):
            pass
        end.cancel()
        child.kill()
        child.wait()

    def resumed(self, store, form):
        """An export in shards is killed until it ends. Returns how often that was."""
        killed, whole, kills = self.folder / "shards", self.folder / "whole-shards", 0
        for out in (killed, whole):
            shutil.rmtree(out, ignore_errors=True)
        args = ["export", "--store", store, "--shard-size", "25", *form]
        start = time.monotonic()
        self.run(*args, "--out", whole)
        self.times["shards"] = time.monotonic() - start
        while self.killed("shards", self.command(*args, "--out", killed)):
            kills += 1
            if kills == KILLS_MAX:
                fail(f"{killed}: killed {kills} times, and never came to its end")
        names = {path.name for path in whole.iterdir()}
        if names != {path.name for path in killed.iterdir()}:
            fail(f"{killed}: other files than {whole}")
        for name in names:
            if (killed / name).read_bytes() != (whole / name).read_bytes():
                fail(f"{killed / name} is not that of an export without a kill")
        return kills

    def whole(self, store):
        """Crawls to the end. Returns the documents, each as the addresses of its copies."""
        start = time.monotonic()
        subprocess.run(self.crawling(store), check=True, stdout=subprocess.DEVNULL)
        self.times.setdefault("crawl", (time.monotonic() - start) / 3)
        self.check(store)
        return self.documents(store)

    def documents(self, store):
        out = self.folder / f"{store.name}-corpus"
        self.run("export", "--store", store, "--out", out, "--trust-unsettled")
        groups = {}
        for name in ("documents.jsonl", "duplicates.jsonl"):
            for line in (out / name).open():
                row = json.loads(line)
                groups.setdefault(row["docId"], set()).add(row["url"])
        return sorted(map(sorted, groups.values()))

    def same(self, whole, store):
        found = self.documents(store)
        if found != whole:
            fail(f"{self.folder}: the crawl that was killed has {len(found)} documents, the other one {len(whole)}")
        return 1

    def backup(self, store, backups):
        """A backup is made until it is killed. Those that are there are whole."""
        killed = self.killed("backup", self.command("store", "backup", "--store", store, "--to", backups, "--keep", 3))
        lists = list((backups / "backups").glob("*.jsonl")) if backups.exists() else []
        if lists:
            restored = self.folder / "restored"
            shutil.rmtree(restored, ignore_errors=True)
            self.run("store", "verify", backups)
            self.run("store", "restore", "--from", backups, "--store", restored)
            self.check(restored)
        return killed, len(lists)

    def compact(self, store):
        copy = self.folder / "compacted"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(store, copy)
        before = (copy / "store.redb").stat().st_size
        killed = self.killed("compact", self.command("store", "compact", "--store", copy))
        self.check(copy)
        if (copy / "store.redb").stat().st_size > before or self.documents(copy) != self.documents(store):
            fail(f"{copy}: the compacted store is another one")
        return killed

    def merge(self, stores):
        """Stores are merged until that is killed, and again, until one comes to its end."""
        if not self.sources:
            self.sources = [self.folder / f"source-{n}" for n in range(len(stores))]
            for source, store in zip(self.sources, stores):
                shutil.copytree(store, source)
            self.run("store", "merge", *self.sources, "--into", self.folder / "merged-whole")
            self.merged = self.documents(self.folder / "merged-whole")
        into = self.folder / "merged"
        killed = self.killed("merge", self.command("store", "merge", *self.sources, "--into", into))
        self.check(into)
        if not killed:
            if self.documents(into) != self.merged:
                fail(f"{into}: the merge that was killed has other documents")
            shutil.rmtree(into)
        return killed

    def archiving(self, folder):
        return [*self.crawling(folder / "store"), "--warc", str(folder / "warc")]

    def rebuilding(self, warc, store):
        return self.command("rebuild", "--warc", warc, "--store", store, "--quiet")

    def archived(self, whole):
        """Crawls with WARC files, and kills that. Those of one that came to its end make the same store."""
        folder = self.folder / "archived"
        killed = self.killed("warc", self.archiving(folder))
        self.check(folder / "store")
        if not killed:
            self.same(whole, folder / "store")
            self.run("rebuild", "--warc", folder / "warc", "--store", folder / "again", "--quiet")
            self.same(whole, folder / "again")
            shutil.rmtree(folder)
        return killed

    def rebuilt(self, whole):
        """Makes a store from the files of a crawl that was not killed until that is killed."""
        warc, store = self.folder / "with-warc/warc", self.folder / "rebuilt"
        killed = self.killed("rebuild", self.rebuilding(warc, store))
        self.check(store)
        if not killed:
            self.same(whole, store)
            shutil.rmtree(store)
        return killed

    def importing(self, store):
        return self.command("import", "--store", store, "--quiet", self.lines)

    def imported(self, store):
        """What an import leaves: documents with all copies, and the list of what is no document."""
        self.check(store)
        return self.documents(store), (store / "import-rejected.jsonl").read_text()

    def sets(self, out):
        """The files of a dedup, but for the report with its times."""
        return {path.name: path.read_bytes() for path in out.glob("*.jsonl")}

    def follow(self, store):
        """Each acknowledged article is in the corpus."""
        out = self.folder / "acknowledged"
        self.run("export", "--store", store, "--out", out, "--trust-unsettled")
        known = set()
        for name in ("documents.jsonl", "duplicates.jsonl"):
            for line in (out / name).open():
                known.add(json.loads(line)["url"])
        lost = [name for name in self.acknowledged if f"http://sent.example/{name}" not in known]
        if lost:
            fail(f"{len(lost)} acknowledged articles are lost, such as {lost[0]}")


def files(folder):
    """What is in a folder: its names with sizes and moments of writing."""
    if not folder.exists():
        return {}
    found = {}
    for path in folder.iterdir():
        state = path.stat()
        found[path.name] = (state.st_size, state.st_ino, state.st_mtime_ns)
    return found


def look_at_set(folder, before):
    """The files of one output are one set."""
    after = files(folder)
    left = [name for name in after if name.startswith(".") or "partial" in name]
    named = {name: file for name, file in after.items() if name not in left}
    new = [name for name, file in named.items() if before.get(name) != file]
    if new and before and len(new) < len(named) and "manifest.json" in named:
        return f"{folder.name}: {sorted(new)} are new, {sorted(set(named) - set(new))} are old"
    return None


def fail(text):
    print(text, file=sys.stderr)
    os._exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crawl", default="target/release/crawl")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kills-"))
    loop = Loop(os.path.abspath(args.crawl), folder, args.seed)
    crawled, served, dedup, exported = (folder / name for name in ("crawled", "served", "dedup", "exported"))
    counts, mixed, crawls, resumed, imports, dedups = {}, 0, 0, 0, 0, 0
    whole = loop.whole(folder / "whole")
    importing, imported = folder / "imported", folder / "whole-import"
    start = time.monotonic()
    subprocess.run(loop.importing(imported), check=True, stdout=subprocess.DEVNULL)
    loop.times["import"] = time.monotonic() - start
    imported = loop.imported(imported)
    # Times of whole ones: what is killed before its first commit, again and again, never ends.
    archive = folder / "with-warc"
    for kind, command in [
        ("warc", loop.archiving(archive)),
        ("rebuild", loop.rebuilding(archive / "warc", folder / "rebuilt-once")),
    ]:
        start = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        loop.times[kind] = time.monotonic() - start
    loop.run("dedup", loop.lines, "--out", folder / "whole-dedup", "--quiet")
    deduped = loop.sets(folder / "whole-dedup")
    for round in range(args.rounds):
        kind = KINDS[round % len(KINDS)]
        killed, fault = True, None
        if kind == "crawl":
            killed = loop.killed(kind, loop.crawling(crawled))
            loop.check(crawled)
            if not killed:
                crawls += loop.same(whole, crawled)
                shutil.rmtree(crawled)
        elif kind == "serve":
            loop.serve(served, 2.0)
            loop.check(served)
        elif kind == "dedup":
            before = files(dedup)
            killed = loop.killed(kind, loop.command("dedup", loop.lines, "--out", dedup))
            fault = look_at_set(dedup, before)
            if not killed:
                dedups += 1
                fault = fault or (None if loop.sets(dedup) == deduped else "dedup: other files than without a kill")
        elif kind == "import":
            killed = loop.killed(kind, loop.importing(importing))
            loop.check(importing)
            if not killed:
                if loop.imported(importing) != imported:
                    fail(f"{folder}: the import that was killed is not as the other one")
                imports += 1
                shutil.rmtree(importing)
        elif kind == "export":
            before = files(exported)
            killed = loop.killed(kind, loop.command("export", "--store", served, "--out", exported))
            fault = look_at_set(exported, before)
            if not killed and not (exported / "manifest.json").exists():
                fault = "exported: no manifest, although the export ended"
            form = (["--compress", "zstd"], ["--format", "parquet"], ["--format", "markdown"])[round // len(KINDS) % 3]
            resumed += loop.resumed(served, form)
        elif kind == "backup":
            killed, lists = loop.backup(served, folder / "backups")
        elif kind == "compact":
            killed = loop.compact(served)
        elif kind == "merge":
            killed = loop.merge([folder / "whole", served])
        elif kind == "warc":
            killed = loop.archived(whole)
        elif kind == "rebuild":
            killed = loop.rebuilt(whole)
        else:
            copy = folder / "expired"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(served, copy)
            killed = loop.killed(kind, loop.command("expire", "--store", copy, "--older-than", "1s", "--yes"))
            loop.check(copy)
        mixed += fault is not None
        if fault:
            print(f"round {round + 1}: {fault}")
        ran, ended = counts.get(kind, (0, 0))
        counts[kind] = (ran + killed, ended + (not killed))
    loop.follow(served)
    while loop.sources and loop.merge([]):
        pass
    while loop.archived(whole):
        pass
    while loop.rebuilt(whole):
        pass
    loop.whole(crawled)
    crawls += loop.same(whole, crawled)
    subprocess.run(loop.importing(importing), check=True, stdout=subprocess.DEVNULL)
    if loop.imported(importing) != imported:
        fail(f"{folder}: the import that was killed is not as the other one")
    imports += 1
    for kind, (killed, ended) in counts.items():
        print(f"{kind:8} {killed} killed, {ended} ended before")
    print(f"{len(loop.acknowledged)} articles acknowledged, none lost; {crawls} crawls with the same {len(whole)} "
          f"documents as one without a kill; {imports} imports and {dedups} dedups like one without; {mixed} outputs of "
          f"two runs; {resumed} kills of exports that went on")
    if mixed:
        sys.exit(1)
    shutil.rmtree(folder)


main()
