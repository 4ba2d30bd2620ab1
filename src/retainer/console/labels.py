"""Labels: the words of the console for fields, filters and values, where they do not follow from the API's names."""

import re
from collections.abc import Collection

from sqlalchemy import Table

from retainer.console.words import number, short_day

LABELS = {
    "address_line1": "Address line 1",
    "address_line2": "Address line 2",
    "amount_credited": "Credited",
    "amount_paid": "Paid",
    "applied_amount": "Applied to the balance",
    "awaiting": "Waiting for",
    "bic": "BIC",
    "body": "Text",
    "budget_minutes": "Budget of time",
    "budget_used_percent_min": "Budget used, at least %",
    "check_interval_seconds": "Checked every",
    "code": "Short name",
    "converted_project_id": "Project",
    "core_update_available": "Core update",
    "cost_rate": "Hourly cost",
    "cost_rate_from": "New cost from",
    "date": "Day",
    "date_from": "From",
    "date_to": "To",
    "due_date": "Due",
    "due_date_from": "Due from",
    "due_date_to": "Due by",
    "duration_minutes": "Time",
    "early_payment_discount_days": "Early payment within",
    "early_payment_discount_percent": "Early-payment discount",
    "estimated_minutes": "Estimated",
    "expected_status": "Expected status codes",
    "expense_amount": "Expenses",
    "external_id": "External ID",
    "fee_month": "Month",
    "first_response_minutes": "First response after",
    "has_overdue": "Overdue invoices",
    "has_rate": "With a rate",
    "has_refund_due": "To refund",
    "has_updates": "Updates available",
    "invoice_email": "Email for invoices",
    "is_primary": "Primary contact",
    "issue_date": "Issued",
    "issue_date_from": "Issued from",
    "issue_date_to": "Issued until",
    "keyword": "Text on the page",
    "label": "Name",
    "monitoring_enabled": "Monitored",
    "paid_date": "Day",
    "paid_date_from": "Paid from",
    "paid_date_to": "Paid until",
    "parent_id": "Parent task",
    "payment_terms_days": "Payment terms",
    "plugin_updates_count": "Updates",
    "plugin_version_lt": "Plugin older than",
    "progress_percent": "Tasks done",
    "purchase_order": "Order number",
    "q": "Search",
    "receipt_url": "Receipt",
    "refund_due": "To refund",
    "refundable_amount": "To refund",
    "remaining_minutes": "Remaining",
    "resolution_minutes": "Resolved after",
    "response_time_ms": "Response time",
    "require_second_factor": "Everyone needs a second factor",
    "since": "From",
    "sort": "Order",
    "start_date": "Start",
    "ssl_expires_at": "Certificate expires",
    "ssl_expires_before": "Certificate expires before",
    "tag_ids": "Tags",
    "target_percent": "Billable target",
    "tax_outside_eu": "Services outside the EU",
    "tasks_done_count": "Done",
    "time_rounding_each": "Round each",
    "time_rounding_minutes": "Round hours to, minutes",
    "time_rounding_to": "Direction of rounding",
    "timezone": "Time zone",
    "template_id": "From template",
    "type": "Kind",
    "until": "To",
    "update_version": "Available",
    "uptime_percent_24h": "Uptime, 24 hours",
    "uptime_percent_30d": "Uptime, 30 days",
    "uptime_percent_7d": "Uptime, 7 days",
    "used_on": "On",
    "user_id": "Person",
    "weekly_capacity_minutes": "Hours per week",
    "working_weekdays": "Working days",
    "wp_update_version": "WordPress update",
}
"""Labels of fields and filters that do not follow from their names."""
OF_KINDS = {
    "expenses": {"amount": "Gross", "net_amount": "Net", "billable_amount": "To bill, net"},
    "tags": {"usage_count": "Records"},
    "tickets": {"created_at": "Opened"},
}
"""Labels of fields that a kind of record calls otherwise, by its table."""
ENDS = {"_min": ", at least", "_max": ", at most", "_en": ", English", "_de": ", German", "_minutes": " time"}
SPELLED = {"color": "colour", "iban": "IBAN", "ids": "IDs", "php": "PHP", "url": "URL", "vat": "VAT", "wp": "WordPress"}
"""The spelling of words in names, where people write them otherwise."""
WORDS = {
    "covered": "Covered by a fee",
    "de": "German",
    "en": "English",
    "external_contact": "Contact",
    "non_billable": "Not billable",
    "requester": "Client",
    "todo": "To do",
    "unknown": "Not checked yet",
    "unpriced": "No rate",
    "woocommerce": "WooCommerce",
    "wordpress": "WordPress",
}
"""Words of enumerations that do not follow from their values."""
HINTS = {
    ("clients", "number"): "Blank: the next number of the series.",
    ("projects", "code"): "A code of your own, like RELAUNCH.",
    ("projects", "budget_amount"): "Net. Today warns at 80%.",
    ("projects", "budget_minutes"): "Hours. Today warns at 80%.",
}
"""What a form says about a field, by table and field, where the sentence of the API is for programs."""
USUAL = {
    ("clients", "currency"): "{currency} (account)",
    ("clients", "language"): "{language} (account)",
    ("external_contacts", "is_primary"): "Only the first contact",
    ("projects", "billing_type"): "By time for a client",
    ("tasks", "billable"): "As the project",
    ("time_entries", "billable"): "As the task or project",
    ("quotes", "currency"): "As the client",
    ("invoices", "currency"): "As the client",
    ("expenses", "currency"): "As the client",
    ("expenses", "billable"): "For a client, as the project",
}
"""What a blank choice of a form stands for, by table and field."""
REWORDED = (
    (re.compile(r"\b([Nn]ull|[Oo]mitted|Default):"), "If blank:"),
    (re.compile(r"\b(Send null|Leave it out)\b"), "Leave it blank"),
    (re.compile(r"\bNull\b"), "Blank"),
    (re.compile(r"\bnull\b"), "blank"),
    (re.compile(r"\bfalse\b"), "“No”"),
    (re.compile(r"\bSend\b"), "Enter"),
    (re.compile(r"\btaken by ([a-z ]{1,30}) [0-9]+\b"), r"taken by another \1"),
)
"""Terms of the API, and what people read instead."""
AMOUNT = re.compile(r"(?<![\w.,])[0-9]+(?:\.[0-9]+)?(?= [A-Z]{3}\b)|(?<![\w.,:/-])[0-9]+\.[0-9]+(?![\w.,]*[\w])")
"""An amount with its currency, or a number with decimals; no version, host or address."""
CHOICES = re.compile(r"(?<=one of: )[a-z_0-9, ]+")
VALID = re.compile(r" Valid are: .*")
RECORD = re.compile(r"\b(Client|Project) [0-9]+\b")
DAY = re.compile(r"(?<!like )\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b")
"""A day; one that says how days are typed stays as it is."""
NAME = re.compile(r"`?\b[a-z]+(?:_[a-z0-9]+)+\b`?|`[a-z]+`")


def field_label(name: str, table: Table | None = None) -> str:
    own = OF_KINDS.get(table.name, {}) if table is not None else {}
    if name in own or name in LABELS:
        return own.get(name) or LABELS[name]
    for end, added in ENDS.items():
        if name.endswith(end):
            return field_label(name.removesuffix(end)) + added
    for end in ("_id", "_at", "_count", "_amount", "_percent"):
        name = name.removesuffix(end)
    label = " ".join(SPELLED.get(word, word) for word in name.removeprefix("is_").split("_"))
    return label[:1].upper() + label[1:]


def word_of(value: str) -> str:
    return WORDS.get(value) or f"{value[:1].upper()}{value[1:]}".replace("_", " ")


def in_words(sentence: str, names: Collection[str]) -> str:
    """Return a sentence of the API with labels of fields, words for values, amounts and days, and no ids of records."""

    def word(found: re.Match[str]) -> str:
        name = found[0].strip("`")
        return f"“{field_label(name)}”" if name in names else word_of(name).lower() if "`" in found[0] else found[0]

    def day(found: re.Match[str]) -> str:
        try:
            return short_day(found[0])
        except ValueError:  # a message may repeat a typed day that does not exist
            return found[0]

    for term, instead in REWORDED:
        sentence = term.sub(instead, sentence)
    sentence = VALID.sub("", sentence).replace("Unknown parameter", "Unknown filter")
    sentence = CHOICES.sub(lambda found: ", ".join(map(word_of, found[0].split(", "))), sentence)
    sentence = RECORD.sub(lambda found: f"This {found[1].lower()}", NAME.sub(word, sentence))
    return DAY.sub(day, AMOUNT.sub(lambda found: number(found[0]), sentence))
