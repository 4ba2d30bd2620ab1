"""Files in the console: the PDF of a document, its e-invoice, and a sample of a PDF by today's settings."""

from retainer.console.editing.pages import create_record
from retainer.console.page_context import File, PageContext, Reply
from retainer.errors import Refusal
from retainer.kernel.resource import read_id
from retainer.store.tx import Tx

CLIENT = {"name": "Sample client", "address_line1": "1 Main Street", "postal_code": "10115", "city": "Berlin"}
LINES = (
    {"description": "Design of the start page", "quantity": "12.5", "unit": "hour", "unit_price": "110"},
    {"description": "Photographs", "unit_price": "480"},
)


def show(tx: Tx, context: PageContext) -> Reply:
    """Return a file; a draft's is the preview of what will be issued. Raises `not_found` and what it lacks."""
    kind = context.catalogue.find(context.path_parameters["kind"])
    record_id = read_id(context.path_parameters["record"], kind.table)
    forms = kind.reading.representations if kind.reading else ()
    form = next((form for form in forms if form.suffix == context.path_parameters["suffix"]), None)
    if form is None:
        raise Refusal("not_found", f"A {kind.noun} has no such file.")
    return File(form.media_type, form.prepare(tx, kind.get(tx, record_id)))


def show_sample(tx: Tx, context: PageContext) -> Reply:
    """Return the PDF of a draft for a sample client: both exist only until their transaction is rolled back."""
    clients, invoices = (context.catalogue.find(name, "creating") for name in ("clients", "invoices"))
    form, *_ = invoices.reading.representations if invoices.reading else ()
    client = create_record(tx, clients, {**CLIENT})
    return File(
        form.media_type, form.prepare(tx, create_record(tx, invoices, {"client_id": client.id, "lines": [*LINES]}))
    )
