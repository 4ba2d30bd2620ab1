"""The page of a single record: what matters first, then the rest, then where it came from."""

from retainer.console.names import title_of
from retainer.console.page_context import PageContext, Reply
from retainer.console.records import documents
from retainer.console.records.actions import list_actions, new_links
from retainer.console.records.layouts import GENERIC, LAYOUTS, facts_of, related_blocks, rest_of
from retainer.console.records.page import RecordPage
from retainer.console.statuses import badges_of
from retainer.identity.keys import key_list
from retainer.kernel.resource import read_id
from retainer.store.tx import Tx
from retainer.traffic.request_log import requests_of_record

REQUESTS = 5


def show(tx: Tx, context: PageContext) -> Reply:
    kind = context.catalogue.find(context.path_parameters["kind"])
    record = kind.get(tx, read_id(context.path_parameters["record"], kind.table))
    page, layout = RecordPage(tx, context, kind, record), LAYOUTS.get(kind.name, GENERIC)
    facts, hidden = facts_of(page, layout)
    blocks = [*layout.blocks(page), *related_blocks(page, layout), *rest_of(page, hidden)]
    warnings = documents.warnings(page)
    written_by = requests_of_record(tx, kind.name, record.id, REQUESTS) if context.may("requests") else []
    actions, more = list_actions(kind, record, has_einvoice=documents.has_einvoice(page))
    page.names.load()
    return context.render(
        "record",
        kind=kind,
        record=record,
        label=title_of(kind.table, record),
        badges=badges_of(record),
        actions=actions,
        more=more,
        additions=new_links(context.catalogue, kind, record),
        warnings=warnings,
        facts=facts,
        blocks=blocks,
        written_by=written_by,
        names={key.id: key.name for key in key_list.list_keys(tx)} if written_by else {},
    )
