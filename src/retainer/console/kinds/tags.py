"""Tags: labels that group records of all kinds, with links to the lists of those that have them."""

import json
from collections.abc import Sequence

from sqlalchemy import select

from retainer.console.kinds.display import Display
from retainer.console.names import Link
from retainer.console.values import Column, Value, Values
from retainer.crm.tags import Tag
from retainer.schema import TAG_LINKS
from retainer.store.engines.sql import INTEGER, is_listed, listed

IDS = listed("ids", INTEGER).scalar_subquery()
TAGGED = {
    owner: select(links.c.tag_id).where(is_listed(links.c.tag_id, IDS)).distinct() for owner, links in TAG_LINKS.items()
}


def lists(values: Values, tags: Sequence[Tag]) -> dict[int, Value]:
    ids, found = json.dumps([tag.id for tag in tags]), dict[int, list[Link]]()
    for table, statement in TAGGED.items():
        kind = values.context.catalogue.by_table[table.name]
        for (tag_id,) in values.tx.all(statement, ids=ids):
            found.setdefault(tag_id, []).append(Link(kind.title, f"/records/{kind.name}?tag_id={tag_id}"))
    return {tag_id: Value("links", links=links) for tag_id, links in found.items()}


DISPLAY = Display(columns=("name", "usage_count", Column("used_on", load=lists), "created_at"), is_offered=True)
