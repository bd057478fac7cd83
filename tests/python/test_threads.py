"""Threads go on while the model computes; Ctrl-C stops it between passes; leaving at any moment is clean."""

import signal
import subprocess
import sys
import threading
import time

from conftest import MODEL, PROMPT

import foresay

INTERRUPTED = """
import signal, sys, threading, time
import foresay

model = foresay.load(sys.argv[1], threads=1)
expected = model.generate("def f(", max_tokens=6).ids

def endless():
    while True:
        model.generate("def f(", max_tokens=2000, ignore_eos=True)

def endless_stream():
    while True:
        for piece in model.stream("def f(", max_tokens=2000, ignore_eos=True):
            pass

for work in (endless, endless_stream, endless):
    threading.Timer(0.3, lambda: print("go", flush=True)).start()  # runs: the GIL is free
    try:
        work()
    except KeyboardInterrupt:
        print("stopped", flush=True)
    assert model.generate("def f(", max_tokens=6).ids == expected
print("done", flush=True)
"""

LEFT_OPEN = """
import sys
import foresay

model = foresay.load(sys.argv[1], threads=2)
stream = model.stream("def f(", max_tokens=2000, ignore_eos=True)
next(stream)
print("leaving", flush=True)
"""

OTHER_THREAD = """
import atexit, sys, threading, time

atexit.register(lambda: print(len(model.generate("def f(", max_tokens=3).ids), flush=True))  # runs after foresay's own
import foresay

model = foresay.load(sys.argv[1], threads=2)
threading.Thread(target=lambda: model.generate("def f(", max_tokens=2000, ignore_eos=True), daemon=True).start()
time.sleep(0.3)
print("leaving", flush=True)
"""


def test_the_gil_is_free_during_a_pass():
    model = foresay.load(MODEL, threads=1, prefill_chunk=0)
    batch = model.batch()
    batch.add([5] * 600, max_tokens=1)
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.001):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.monotonic()
    batch.step()  # the whole prompt in one pass
    end = time.monotonic()
    stop.set()
    thread.join()
    assert end - start > 0.02
    inside = [each for each in ticks if start + 0.001 < each < end - 0.001]
    assert len(inside) >= 5, (end - start, len(inside))


def test_ctrl_c_stops_between_passes_and_the_model_goes_on():
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED, MODEL], stdout=subprocess.PIPE, text=True)
    try:
        said = []
        for line in child.stdout:
            said.append(line.strip())
            if line == "go\n":
                child.send_signal(signal.SIGINT)
        assert child.wait(60) == 0
        assert said == ["go", "stopped"] * 3 + ["done"]
    finally:
        child.kill()


def test_threads_share_a_model(model):
    expected = model.generate(PROMPT, max_tokens=24).ids
    found = [None] * 4

    def work(i):
        found[i] = (
            model.generate(PROMPT, max_tokens=24).ids if i % 2 else model.encode("".join(model.stream(PROMPT)))
        )

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[1] == found[3] == expected
    assert found[0] == found[2]


def test_the_interpreter_ends_cleanly_with_work_left():
    for script, said in ((LEFT_OPEN, "leaving\n"), (OTHER_THREAD, "leaving\n3\n")):
        child = subprocess.run(
            [sys.executable, "-X", "dev", "-c", script, MODEL], capture_output=True, text=True, timeout=120
        )
        assert (child.returncode, child.stdout, child.stderr) == (0, said, "")
