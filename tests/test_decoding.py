"""Decoding: threads that read by a type for the first time meet its whole description."""

import subprocess
import sys

import pytest

PROGRAM = """
import threading, time
from typing import Annotated
import msgspec
from retainer.values.decoding import converter, decoder

class Slow(type):
    def __getattr__(cls, name):  # msgspec asks for these while it describes a type: other threads run meanwhile
        time.sleep(0.01)
        raise AttributeError(name)

class Kind(metaclass=Slow):
    pass

class Line(msgspec.Struct):
    amount: Kind | None
    text: str

shared = converter(Annotated[Kind | None, msgspec.Meta(title="kind")])
ways = {
    "a struct": lambda: decoder(list[Line])(b'[{"amount": null, "text": "Design"}]')[0].text == "Design",
    "a kind": lambda: shared(None) is None,
}
barrier = threading.Barrier(4)
read = []

def first_use(way):
    barrier.wait()
    read.append(ways[way]())

threads = [threading.Thread(target=first_use, args=(WAY,)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert read == [True] * 4
"""


@pytest.mark.parametrize("way", ["a struct", "a kind"])
def test_threads_that_read_a_type_for_the_first_time_at_once_do_not_end_the_process(way):
    subprocess.run([sys.executable, "-c", PROGRAM.replace("WAY", repr(way))], check=True, timeout=120)
