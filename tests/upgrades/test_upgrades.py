"""Everything that a former delivery has answered, its upgraded database answers, too."""

import contextlib

import time_machine

from retainer.rollups import doctor
from retainer.schema import fingerprint
from retainer.schema.migrations import migrate
from retainer.store.engines import connect
from retainer.store.tx import Store
from tests.length import by_turns
from tests.skips import find_program
from tests.upgrades.former import DIFFERENCES, Former, differences, each_engine, each_former, numbered, recorded
from tests.upgrades.reading import Reader


@each_former
@each_engine
def test_an_upgraded_database_answers_as_its_own_server_did(former: Former, kind: str, url: str):
    with contextlib.closing(connect(url)) as engine:
        assert fingerprint.revision(engine) == former.revision
        said: list[str] = []
        assert migrate(engine, said.append)[0] == former.revision
        assert [line for line in said if " locks " not in line] == []
        assert fingerprint.revision(engine) == fingerprint.head()
        assert doctor.inspect(Store(engine), repair=False) == []
    record = recorded(former)
    documents = set()
    if kind == "sqlite":
        documents = {key[:2] for key in by_turns(sorted(key for key in record if key[0].endswith(" pdf")))}
    if documents:
        find_program("pdftotext")
    with time_machine.travel(former.clock, tick=False), contextlib.closing(Reader(url, former)) as reader:
        now = numbered(reader.all(lambda name, number: (f"{name} pdf", str(number)) in documents))
    before = {
        (part, *rest): value
        for (part, *rest), value in record.items()
        if not is_document(part) or (part.replace(" xml", " pdf"), rest[0]) in documents
    }
    found = list(differences(before, now))
    unmeant = [
        (path, key, first, second)
        for path, key, first, second in found
        if not any(each.covers(former, path, first, second) for each in DIFFERENCES)
    ]
    assert unmeant == [], f"{len(unmeant)} of {len(found)} differences in {len(before)} lines"
    assert len(now) == len(before)


def is_document(kind: str) -> bool:
    return kind.endswith((" pdf", " xml"))
