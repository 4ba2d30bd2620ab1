"""The files of a record in the console: the PDF of an invoice, quote or credit note, and its e-invoice."""

from retainer.console.page_context import NO_STORE, PageContext, Reply
from retainer.errors import Refusal
from retainer.kernel.http import Response
from retainer.kernel.resource import read_id
from retainer.store.tx import Store


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
    file = prepared.finish(store, context.person, context.run_apart)
    headers = [
        ("content-type", form.media_type),
        ("content-disposition", f'inline; filename="{file.name}"'),
        ("x-content-type-options", "nosniff"),
        NO_STORE,
    ]
    return Response(200, headers, file.content)
