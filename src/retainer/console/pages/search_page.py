"""The search over clients, projects, invoices and tickets."""

from retainer.console.catalogue import label_of
from retainer.console.page_context import PageContext, Reply
from retainer.errors import Refusal
from retainer.store.tx import Tx
from retainer.traffic import request_log

KINDS = ("clients", "projects", "invoices", "tickets")
SHOWN = 8


def show(tx: Tx, context: PageContext) -> Reply:
    """Show the results for a text; a request id redirects to its request."""
    text = context.query.text("q")
    if text:
        logged = request_log.list_requests(tx, request_log.LogFilter(request_id=text), limit=1).requests
        if logged:
            return context.redirect(f"/requests/{logged[0].position}")
    found = []
    for name in KINDS if text else ():
        kind = context.catalogue.find(name)
        try:
            listed = kind.page(tx, {"q": text}, size=SHOWN)
        except (ValueError, Refusal):
            break
        found.append((kind, listed.meta.total, [(label_of(record), record) for record in listed.data]))
    return context.render("search", text=text, found=found, total=sum(total for _, total, _ in found))
