"""The pages of lists of records."""

from urllib.parse import urlencode

from retainer.console.catalogue import label_of
from retainer.console.page_context import PageContext, Reply
from retainer.errors import Refusal
from retainer.kernel.query import parameters
from retainer.store.tx import Tx
from retainer.values.parameters import read_whole

PER_PAGE = 25


def show_list(tx: Tx, context: PageContext) -> Reply:
    """Show the records of a kind, filtered by a reference or a search. Raises `not_found`."""
    kind = context.catalogue.find(context.path_parameters["kind"])
    known = parameters(kind.listing.query)
    filters = {name: texts[-1] for name, texts in context.query.texts.items() if name in known and texts[-1]}
    page = read_whole(context.query.text("page")) or 1
    try:
        listed = kind.page(tx, filters, number=page, size=PER_PAGE)
    except ValueError as error:
        raise Refusal("not_found", f"The list cannot be filtered like this: {error}") from None
    others = {"previous": page - 1 if page > 1 else 0, "next": page + 1 if page < listed.meta.last_page else 0}
    return context.render(
        "records",
        kind=kind,
        listed=listed,
        rows=[(label_of(record), record) for record in listed.data],
        filters=filters,
        links={name: urlencode({**filters, "page": other}) for name, other in others.items() if other},
    )
