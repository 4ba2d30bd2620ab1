"""Files in the console: the PDF of a document, its e-invoice, and a sample of a PDF by today's settings."""

from contextlib import suppress

from retainer.console.editing.pages import create_record
from retainer.console.page_context import NO_STORE, PageContext, Reply
from retainer.errors import Refusal
from retainer.kernel.http import Response
from retainer.kernel.representations import Prepared
from retainer.kernel.resource import read_id
from retainer.store.tx import RolledBack, Store

CLIENT = {"name": "Sample client", "address_line1": "1 Main Street", "postal_code": "10115", "city": "Berlin"}
LINES = (
    {"description": "Design of the start page", "quantity": "12.5", "unit": "hour", "unit_price": "110"},
    {"description": "Photographs", "unit_price": "480"},
)


def show(store: Store, context: PageContext) -> Reply:
    """Return a file; a draft's is the preview of what will be issued. Raises `not_found` and what it lacks."""
    kind = context.catalogue.find(context.path_parameters["kind"])
    record_id = read_id(context.path_parameters["record"], kind.table)
    forms = kind.reading.representations if kind.reading else ()
    form = next((form for form in forms if form.suffix == context.path_parameters["suffix"]), None)
    if form is None:
        raise Refusal("not_found", f"A {kind.noun} has no such file.")
    with store.begin(context.person, write=False) as tx:
        tx.snapshot()
        prepared = form.prepare(tx, kind.get(tx, record_id))
    return respond(store, context, form.media_type, prepared)


def show_sample(store: Store, context: PageContext) -> Reply:
    """Return the PDF of a draft for a sample client: both exist only until their transaction is rolled back."""
    clients, invoices = (context.catalogue.find(name, "creating") for name in ("clients", "invoices"))
    form, *_ = invoices.reading.representations if invoices.reading else ()
    with suppress(RolledBack), store.begin(context.person, write=True) as tx:
        client = create_record(tx, clients, {**CLIENT})
        prepared = form.prepare(tx, create_record(tx, invoices, {"client_id": client.id, "lines": [*LINES]}))
        raise RolledBack
    return respond(store, context, form.media_type, prepared)


def respond(store: Store, context: PageContext, media_type: str, prepared: Prepared) -> Response:
    file = prepared.finish(store, context.person, context.run_apart)
    headers = [
        ("content-type", media_type),
        ("content-disposition", f'inline; filename="{file.name}"'),
        ("x-content-type-options", "nosniff"),
        NO_STORE,
    ]
    return Response(200, headers, file.content)
