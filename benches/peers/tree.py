"""Runs a command and tells what it and all its children took."""

import ctypes, os, resource, signal, subprocess, threading, time

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


def end(pid):
    """Kills a process and its children."""
    for child in children(pid):
        end(child)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def cpu():
    """Seconds of all children that have been waited for, and of theirs."""
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


def run(command, log, limit=None, **options):
    """Seconds by the clock, CPU seconds and peak MiB of the tree, and what it printed. What is not
    done after `limit` seconds is ended, and `ended` says so."""
    # Orphans come to us, so that none is missed.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before, start, peak, ended = cpu(), time.time(), 0, False
    with open(log, "w") as errors:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, **options)
    printed = []
    reader = threading.Thread(target=lambda: printed.append(child.stdout.read()))
    reader.start()
    while child.poll() is None:
        before_look = time.time()
        peak = max(peak, memory(child.pid))
        # A process waits while the kernel counts its pages, which takes long for gigabytes.
        time.sleep(max(0.05, 50 * (time.time() - before_look)))
        if limit and not ended and time.time() - start > limit:
            ended = True
            end(child.pid)
    reader.join()
    seconds = time.time() - start
    if child.returncode and not ended:
        raise SystemExit(f"{command[0]} failed: {open(log).read()[-2000:]}")
    while children(os.getpid()):
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    return {
        "ended": ended,
        "seconds": seconds,
        "cpu": cpu() - before,
        "peak_mib": peak / 1024,
        "printed": printed[0].decode(),
    }
