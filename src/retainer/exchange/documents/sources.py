"""Sources of invoices: what the files of other programs look like, each as a declaration."""

from types import MappingProxyType

from retainer.exchange.columns import CellFields, ImportSource, Ways

NEEDS = ("number", "client", "issue_date")
SUMS: Ways = (("total",), ("line_net",), ("unit_price",))
"""A file needs one of them, so that its invoices have amounts."""
FIELDS = CellFields(
    days=("issue_date", "due_date", "paid_date"),
    numbers=(
        *("total", "paid", "tax", "discount", "quantity", "unit_price"),
        *("line_discount", "line_net", "line_tax", "line_tax_2", "line_total", "tax_rate"),
    ),
    amounts=("total", "line_net"),
)
"""`total`, `paid`, `tax` and `discount` are of the whole invoice; `line_discount` and `tax_rate` are in percent."""
INVOICE_NINJA = ImportSource(
    "invoiceninja",
    "Invoice Ninja",
    {
        "number": ("invoice number", "invoice.number", "invoice invoice number"),
        "client": ("client", "client name", "client.name"),
        "client_number": ("client number", "client.number"),
        "email": ("email", "contact.email"),
        "issue_date": ("invoice date", "invoice.date", "invoice invoice date"),
        "due_date": ("due date", "invoice.due_date", "invoice due date"),
        "paid_date": ("payment.date", "payment date"),
        "status": ("status", "invoice.status", "invoice status"),
        "currency": ("currency", "client.currency_id", "client currency"),
        "total": ("amount", "invoice.amount", "invoice amount"),
        "paid": ("paid", "invoice.paid_to_date", "invoice paid to date", "paid to date"),
        "tax": ("tax amount", "invoice.tax_amount", "total taxes", "invoice total taxes"),
        "discount": ("discount", "invoice.discount", "invoice discount"),
        "purchase_order": ("po number", "invoice.po_number", "invoice po number"),
        "notes": ("public notes", "invoice.public_notes", "invoice public notes"),
        "item": ("item product", "item.product_key", "item product key"),
        "description": ("item notes", "item.notes"),
        "quantity": ("item quantity", "item.quantity"),
        "unit_price": ("item cost", "item.cost"),
        "tax_rate": ("item.tax_rate1", "item tax rate 1", "tax rate 1", "invoice.tax_rate1"),
    },
    NEEDS,
    (SUMS,),
)
FRESHBOOKS = ImportSource(
    "freshbooks",
    "FreshBooks",
    {
        "number": ("invoice #",),
        "client": ("client name",),
        "issue_date": ("date issued",),
        "status": ("invoice status",),
        "paid_date": ("date paid",),
        "item": ("item name",),
        "description": ("item description",),
        "unit_price": ("rate",),
        "quantity": ("quantity",),
        "line_discount": ("discount percentage",),
        "line_net": ("line subtotal",),
        "tax_name": ("tax 1 type",),
        "line_tax": ("tax 1 amount",),
        "line_tax_2": ("tax 2 amount",),
        "line_total": ("line total",),
        "currency": ("currency",),
    },
    (*NEEDS, "line_net", "line_total"),
)
CSV = ImportSource(
    "csv",
    "a CSV file",
    {
        "number": ("number", "invoice", "invoice number", "invoice no", "invoice_number"),
        "client": ("client", "client_name", "client name", "customer"),
        "client_number": ("client_number", "client number", "customer number"),
        "email": ("email", "client_email"),
        "issue_date": ("issue_date", "date", "issue date", "invoice date"),
        "due_date": ("due_date", "due", "due date"),
        "paid_date": ("paid_date", "paid on", "date paid"),
        "status": ("status", "state"),
        "currency": ("currency",),
        "total": ("total", "amount"),
        "paid": ("paid", "amount_paid"),
        "tax": ("tax", "tax_total", "tax amount"),
        "discount": ("discount",),
        "subject": ("subject", "details", "title"),
        "purchase_order": ("purchase_order", "po number"),
        "notes": ("notes",),
        "item": ("item",),
        "description": ("description",),
        "quantity": ("quantity",),
        "unit_price": ("unit_price", "price"),
        "line_discount": ("discount_percent",),
        "line_net": ("line_amount", "line_net"),
        "line_tax": ("line_tax",),
        "line_total": ("line_total",),
        "tax_rate": ("tax_rate", "tax %"),
    },
    NEEDS,
    (SUMS,),
)
SOURCES = MappingProxyType({each.name: each for each in (INVOICE_NINJA, FRESHBOOKS, CSV)})
PAYMENTS = ImportSource(
    "payments",
    "payments",
    {
        "number": ("invoice number", "payment invoice number", "invoice", "number", "invoice #"),
        "paid": ("amount", "payment amount", "paid"),
        "paid_date": ("date", "payment date", "paid_date"),
    },
    ("number", "paid", "paid_date"),
)
"""The list of payments that a ZIP can have in addition to its invoices."""
CREDIT_NOTES = ImportSource(
    "credit notes",
    "credit notes",
    {
        "number": ("credit number", "credit note number", "credit note", "credit.number", "number", "gutschrift"),
        "invoice": ("invoice number", "invoice #", "invoice", "credited invoice", "rechnung", "rechnungsnummer"),
        "issue_date": ("credit date", "credit.date", "issue_date", "issue date", "date", "datum"),
        "total": ("credit amount", "credit.amount", "amount", "total", "betrag"),
        "tax": ("tax", "tax_total", "tax amount", "total taxes", "steuer"),
        "status": ("status", "credit status", "state"),
        "description": ("reason", "description", "public notes", "notes", "grund"),
    },
    ("number", "invoice", "issue_date", "total"),
)
"""The list of credit notes that a ZIP can have, for the invoices in it."""
