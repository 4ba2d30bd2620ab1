"""The first steps of a new account, until it has an invoice."""

from collections.abc import Iterator
from datetime import timedelta

from retainer.console.names import Link
from retainer.console.page_context import PageContext
from retainer.identity.audit import Fields
from retainer.identity.people import users
from retainer.store.tx import Tx
from retainer.values.exact import instant_after

NEW = timedelta(days=30)
"""How long an account is shown its first steps."""


def list_steps(tx: Tx, context: PageContext, account: Fields, *, has_keys: bool) -> Iterator[Link]:
    """Yield what is left to do, as far as the user's role allows it."""
    has_clients, has_invoices = (
        bool(context.catalogue.find(name).first(tx, {}, size=1)) for name in ("clients", "invoices")
    )
    if has_invoices or instant_after(account["created_at"], NEW) < context.now:
        return
    if context.may("settings") and not account["address_line1"]:
        yield Link("Fill in the settings", "/settings", "Documents show your address, tax numbers and bank account.")
    if not has_clients:
        if context.may("settings"):
            yield Link(
                "Move in", "/import", "Import clients, projects, time and invoices of another program, or from CSV."
            )
        yield Link("Create a client", "/records/clients/new", "Projects, time and invoices belong to a client.")
    yield Link("Create an invoice", "/records/invoices/new", "A draft first: you check it, then you issue it.")
    if context.may("people") and len(users.list_users(tx)) == 1:
        yield Link("Add your team", "/people/new", "The people whose time you track, with their hours per week.")
    if context.may("keys") and not has_keys:
        yield Link("Create a key", "/keys/new", "With it, your programs can send records through the API.")
