"""Walking a list by `links.next` while others write to it."""

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from testing.process import until

from retainer.settings import BASE_PATH
from tests.length import first

WRITERS = 10
KEPT = 60
PER_PAGE = 5
MAX_SEEN = 200
"""Records after which the writers stop: in ascending order, they add new ones ahead of the walk."""
NAMES = "abcdefghijklmnopqrstuvwxyz"


class Writers:
    """Threads that add and remove tags until they are stopped."""

    def __init__(self, servers, agency):
        self.servers, self.agency = servers, agency
        self.stop = threading.Event()
        self.written = Counter()

    def write(self, number):
        drawn, mine = random.Random(number), []
        with self.servers.client(key=self.servers.new_key(self.agency)) as client:
            while not self.stop.is_set():
                name = f"{drawn.choice(NAMES)} {number} {self.written[number]}"
                mine.append(client.insist("POST", "/tags", {"name": name}).data["id"])
                if len(mine) > 3:
                    client.insist("DELETE", f"/tags/{mine.pop(drawn.randrange(4))}")
                self.written[number] += 1

    def wait(self):
        """Wait until each has written, and some more than before."""
        before = self.written.total()
        until(lambda: self.stop.is_set() or self._have_written(before + WRITERS), "the writers write")

    def _have_written(self, count):
        return len(self.written) == WRITERS and self.written.total() >= count


def walk(client, sort, writers):
    """Return the ids that a walk sees; the writers write before each page."""
    url, seen = f"/tags?sort={sort}&per_page={PER_PAGE}", []
    while url:
        writers.wait()
        page = client.insist("GET", url)
        seen += [tag["id"] for tag in page.data]
        if len(seen) > MAX_SEEN:
            writers.stop.set()
        url = page.json["links"]["next"]
        url = url and url.partition(BASE_PATH)[2]
    return seen


@pytest.mark.parametrize("sort", first(["name", "-name", "-created_at", "id"]))
def test_a_walk_misses_and_repeats_no_record_while_ten_writers_add_and_remove_others(servers, agency, sort):
    writers = Writers(servers, agency)
    with servers.client(agency["key"]) as client, ThreadPoolExecutor(WRITERS) as pool:
        for place in range(KEPT):
            client.insist("POST", "/tags", {"name": f"{NAMES[place % 26]} kept {place}"})
        kept = {tag["id"] for tag in client.get("/tags?per_page=100").data}
        running = [pool.submit(writers.write, number) for number in range(WRITERS)]
        try:
            seen = walk(client, sort, writers)
        finally:
            writers.stop.set()
        for each in running:
            each.result()
    assert len(kept) == KEPT
    assert kept <= set(seen), "it misses none that was there all the time"
    assert len(seen) == len(set(seen)), "it repeats none"
