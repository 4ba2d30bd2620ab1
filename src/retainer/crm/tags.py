"""Tags: labels that group clients, contacts and other records."""

from functools import partial
from typing import Annotated, Any

from msgspec import Meta
from msgspec.json import encode
from sqlalchemy import BindParameter, ColumnElement, Delete, Insert, Table, bindparam, delete, insert, select

from retainer.kernel.body import New, Patch
from retainer.kernel.query import REPEATED, Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.schema import TAG_LINKS
from retainer.schema.crm import tags
from retainer.schema.filters import Where, one_of_folded
from retainer.store.announcements import maintaining
from retainer.store.engines.sql import INTEGER, id_list, is_listed, listed
from retainer.store.row_mapper import Derived, R, RefersTo
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.collation import printed_form
from retainer.values.common import Color
from retainer.values.kinds import Id, Text50
from retainer.values.records import READ_ONLY, Record


def _tag_ids(table: Table) -> ColumnElement[str]:
    links = TAG_LINKS[table]
    return select(id_list(links.c.tag_id)).where(links.c.record_id == table.c.id).scalar_subquery()


def _has_tag(table: Table, tag_ids: list[BindParameter[int]]) -> ColumnElement[bool]:
    links = TAG_LINKS[table]
    return table.c.id.in_(select(links.c.record_id).where(links.c.tag_id.in_(tag_ids)))


LISTED = listed("tag_ids", INTEGER)
ADDED = LISTED.add_columns(ACCOUNT, bindparam("record_id", type_=INTEGER))
ADD_TAGS = {
    links: insert(links).from_select(("tag_id", "account_id", "record_id"), ADDED) for links in TAG_LINKS.values()
}
REMOVE_TAGS = {
    links: delete(links).where(links.c.record_id == bindparam("record_id"), is_listed(links.c.tag_id, "tag_ids"))
    for links in TAG_LINKS.values()
}
COUNT_USES = maintaining(
    tags, is_listed(tags.c.id, "tag_ids"), values={"usage_count": tags.c.usage_count + bindparam("uses", type_=INTEGER)}
)
TagIds = Annotated[
    list[Id],
    Meta(max_length=50),
    Derived(_tag_ids, sorted),
    RefersTo("tags"),
    "Ids of tags, ascending. A sent list replaces the whole set.",
]
TagFilter = Annotated[OneOf[Id] | None, Where(_has_tag), "Records with at least one of these tags."]


def insert_tagged(tx: Tx, table: Table, record: R) -> R:
    """Insert a record with its tags; return it as it is stored. Raises `validation_failed` with all errors."""
    record_id = changes.insert(tx, table, record)
    save_tags(tx, table, record_id, record)
    return tx.get(table, record_id, type(record))


def update_tagged(tx: Tx, table: Table, before: R, after: R) -> R:
    """Update a record and its tags; return it as it is stored. Raises `validation_failed` with all errors."""
    changes.update(tx, table, before, after)
    save_tags(tx, table, after.id, after, before)
    return tx.get(table, after.id, type(after))


def save_tags(tx: Tx, table: Table, record_id: int, record: Any, before: Any = None) -> None:
    """Replace the tags of a record by its `tag_ids`. Raises `validation_failed` for missing tags."""
    links, wanted, current = TAG_LINKS[table], set(record.tag_ids), set(before.tag_ids if before else ())
    if removed := sorted(current - wanted):
        _change_links(tx, REMOVE_TAGS[links], record_id, removed, -1)
    if added := sorted(wanted - current):
        tx.write_checked(table, record, record_id, partial(_change_links, tx, ADD_TAGS[links], record_id, added, 1))
    if before is not None and current != wanted:
        tx.touch(table, record_id, "tag_ids")


def _change_links(tx: Tx, change: Insert | Delete, record_id: int, tag_ids: list[int], uses: int) -> int:
    values = {"record_id": record_id, "tag_ids": encode(tag_ids).decode()}
    changed = tx.change(change, **values)
    tx.run(COUNT_USES, tag_ids=values["tag_ids"], uses=uses)
    return changed


class Tag(Record):
    """A label that groups records."""

    name: Annotated[Text50, "Unique in the account, ignoring case."]
    color: Annotated[Color | None, "Color of the label; null: none."] = None
    usage_count: Annotated[int, "Number of records with the tag."] = READ_ONLY


class TagsFilter(Filter):
    sorts = ("name", "created_at")
    name: Annotated[OneOf[Text50] | None, REPEATED, one_of_folded("name", fold=printed_form)] = None


api = Resource("/tags", tag="Tags", scope="clients", table=tags)
api.lists(Tag, TagsFilter, "List tags, by name.")


@api.post()
def create_tag(tx: Tx, body: New[Tag]) -> Tag:
    """Create a tag. Its name is unique in the account, ignoring case."""
    return tx.get(tags, tx.insert(tags, body), Tag)


@api.put("/{tag_id}")
@api.patch("/{tag_id}")
def update_tag(tx: Tx, tag_id: Id, patch: Patch[Tag]) -> Tag:
    """Change the name or color of a tag; omitted fields keep their value."""
    tx.update(tags, patch.apply_to(tx.get(tags, tag_id, Tag)))
    return tx.get(tags, tag_id, Tag)


@api.delete("/{tag_id}")
def delete_tag(tx: Tx, tag_id: Id) -> None:
    """Delete a tag, and remove it from all records."""
    tx.delete(tags, tx.get(tags, tag_id, Tag).id)
