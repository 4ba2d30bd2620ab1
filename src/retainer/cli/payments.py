"""Commands on payments."""

from typing import Annotated

import msgspec
import typer

from retainer.billing import payments
from retainer.cli.common import Json, acting_on, say
from retainer.schema import billing as schema
from retainer.values.kinds import MAX_INTEGER

payment_cli = typer.Typer(help="Remove payments that were recorded by mistake.", no_args_is_help=True)

Payment = Annotated[int, typer.Argument(metavar="PAYMENT", min=1, max=MAX_INTEGER, help="The payment's id.")]


@payment_cli.command("remove")
def remove_payment(payment: Payment, *, json: Json = False) -> None:
    """Remove a payment, so that its amount is due again; the audit log keeps its details."""
    with acting_on(schema.payments, payment) as tx:
        removed = payments.remove(tx, payment)
    say(msgspec.structs.asdict(removed), json=json)
