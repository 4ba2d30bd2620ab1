"""Documents: how long PDFs and e-invoices take, by their number of lines, and the memory of the process.

.venv/bin/python -m bench.documents
"""

import statistics
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

from retainer.documents.einvoice import build_einvoice
from retainer.documents.facts import Customer, Document, Issuer, Line, TaxShare
from retainer.documents.pdf import render_pdf

ROUNDS = 10
PRICE = Decimal("100.00")


def document(count: int, number: int) -> Document:
    """Return an invoice with so many lines."""
    net = PRICE * count
    tax = TaxShare(Decimal(19), net, (net * 19 / 100).quantize(Decimal("0.01")))
    address: dict[str, Any] = {
        "address_line1": "Hafenstraße 12",
        "postal_code": "20457",
        "city": "Hamburg",
        "country": "DE",
    }
    text = "Design and development of the shop: cart, payment, vouchers, and the mails to customers"
    line = Line(description=text, quantity=Decimal(1), unit_price=PRICE, tax_rate=Decimal(19), amount=PRICE)
    return Document(
        kind="invoice",
        language="en",
        issuer=Issuer(name="Northlight", vat_number="DE123456788", iban="DE89370400440532013000", **address),
        customer=Customer(name="Bergmann Optik", **address),
        number=f"INV-{number}",
        issue_date="2026-03-03",
        due_date="2026-03-17",
        currency="EUR",
        lines=(line,) * count,
        tax_breakdown=(tax,),
        subtotal=net,
        tax_total=tax.tax_amount,
        total=net + tax.tax_amount,
    )


def memory() -> int:
    """Return the resident memory in MB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


def main() -> None:
    print(f"memory before: {memory()} MB")
    render_pdf(document(1, 0))
    for count in (1, 20, 200, 500):
        pdf, xml = [], []
        for number in range(ROUNDS):
            facts, start = document(count, number), time.perf_counter()
            data = build_einvoice(facts)
            built = time.perf_counter()
            render_pdf(facts, data)
            xml.append(built - start)
            pdf.append(time.perf_counter() - built)
        times = [f"{statistics.median(each) * 1000:.0f} ms (at most {max(each) * 1000:.0f})" for each in (pdf, xml)]
        print(f"{count:4} lines: PDF {times[0]}, XML {times[1]}; memory {memory()} MB")


if __name__ == "__main__":
    main()
