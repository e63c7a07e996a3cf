"""Runs a command and tells what it and all its children took."""

import ctypes, os, resource, subprocess, threading, time

PR_SET_CHILD_SUBREAPER = 36


def children(pid):
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        lists = [open(f"/proc/{pid}/task/{task}/children").read() for task in tasks]
        return [int(child) for text in lists for child in text.split()]
    except OSError:
        return []


def memory(pid):
    """KiB of a process and its children; what several share counts once."""
    own = 0
    try:
        for line in open(f"/proc/{pid}/smaps_rollup"):
            if line.startswith("Pss:"):
                own = int(line.split()[1])
    except OSError:
        pass
    return own + sum(map(memory, children(pid)))


def cpu():
    """Seconds of all children that have been waited for, and of theirs."""
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


def run(command, log, **options):
    """Seconds by the clock, CPU seconds and peak MiB of the tree, and what it printed."""
    # Orphans come to us, so that none is missed.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before, start, peak = cpu(), time.time(), 0
    with open(log, "w") as errors:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, **options)
    printed = []
    reader = threading.Thread(target=lambda: printed.append(child.stdout.read()))
    reader.start()
    while child.poll() is None:
        peak = max(peak, memory(child.pid))
        time.sleep(0.05)
    reader.join()
    seconds = time.time() - start
    if child.returncode:
        raise SystemExit(f"{command[0]} failed: {open(log).read()[-2000:]}")
    while children(os.getpid()):
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    return {
        "seconds": seconds,
        "cpu": cpu() - before,
        "peak_mib": peak / 1024,
        "printed": printed[0].decode(),
    }
