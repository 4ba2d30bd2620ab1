"""Slots: how many requests run at the same time, and in which order."""

import threading

import pytest
from testing.process import until

from retainer.errors import Refusal
from retainer.server.http.slots import BodyReader, RunningSlots


def test_slots_are_handed_over_in_the_order_in_which_they_were_asked_for():
    slots, order, threads = RunningSlots(1), [], []

    def run(number):
        with slots:
            order.append((number, slots.free))

    with slots:
        for number in range(5):
            threads.append(threading.Thread(target=run, args=(number,)))
            threads[-1].start()
            until(lambda count=number + 1: slots.waiting == count, "it waits")
        assert order == []
    for thread in threads:
        thread.join()
    assert order == [(number, 0) for number in range(5)], "a slot that is handed over is never free between"
    assert (slots.free, slots.waiting) == (1, 0)


def test_a_slot_that_is_left_is_for_others_and_taken_again_whatever_happens():
    slots = RunningSlots(1)

    def fail():
        with slots.left():
            assert slots.free == 1
            with slots:
                assert slots.free == 0
            raise ValueError("broken")

    with slots:
        with pytest.raises(ValueError, match="broken"):
            fail()
        assert slots.free == 0
    assert slots.free == 1


class Waiting:
    """A request whose body comes when the test says so."""

    has_body = True

    def __init__(self, body=b"{}"):
        self.comes, self.body, self.environ = threading.Event(), body, {"CONTENT_LENGTH": "2"}

    def read(self):
        assert self.comes.wait(60)
        return self.body


def test_a_sender_waits_for_as_many_bodies_as_are_left_for_others():
    running = RunningSlots(8)
    reader, sent, threads = BodyReader(running, slots=4), [], []

    def read(sender):
        request = Waiting()
        sent.append(request)
        with running:
            reader.read(request, sender)

    def arrive(sender, left):
        threads.append(threading.Thread(target=read, args=(sender,)))
        threads[-1].start()
        until(lambda: reader.free == left, "it waits for its body")

    arrive("a", 3)
    arrive("a", 2)
    with pytest.raises(Refusal) as refused, running:
        reader.read(Waiting(), "a")
    assert (refused.value.code, running.free) == ("unavailable", 8)
    arrive(2, 1)
    for request in sent:
        request.comes.set()
    for thread in threads:
        thread.join()
    assert (reader.free, running.free) == (4, 8)
    cut = Waiting(b"{")
    cut.comes.set()
    with pytest.raises(Refusal, match="incomplete"), running:
        reader.read(cut, "a")
    assert reader.free == 4
