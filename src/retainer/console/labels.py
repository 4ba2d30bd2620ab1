"""Labels: the words of the console for fields, filters and values, where they do not follow from the API's names."""

import re
from collections.abc import Collection

from sqlalchemy import Table

from retainer.console.words import number, short_day
from retainer.errors import FOR_CALLERS, MARKS, NAME, marked
from retainer.web.direction import isolated

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
    "converted_project_id": "Created project",
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
    "is_settled": "Billed elsewhere",
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
    "reminders": "Reminders if overdue",
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
    "expenses": {"amount": "Gross", "net_amount": "Net", "billable_amount": "Billable, net"},
    "tags": {"usage_count": "Records"},
    "tickets": {"created_at": "Opened"},
}
"""Labels of fields that a kind of record calls otherwise, by its table."""
ENDS = {"_min": ", at least", "_max": ", at most", "_en": ", English", "_de": ", German", "_minutes": " time"}
SPELLED = {
    "color": "colour",
    "iban": "IBAN",
    "ids": "IDs",
    "pdf": "PDF",
    "php": "PHP",
    "url": "URL",
    "vat": "VAT",
    "wp": "WordPress",
}
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
MISSING = {
    "again": "Enter the password again",
    "amount": "Enter an amount",
    "current": "Enter your current password",
    "email": "Enter an email address",
    "scopes": "Select at least one permission",
    "since": "Enter a day",
    "to": "Enter an address",
}
"""What a form says of a required field that is blank, where it does not follow from its label."""
AN = re.compile(r"[aeio]|hour|u(?!n[it]|r[li]|s[aei])", re.IGNORECASE)
"""How nouns begin that have `an` before them."""
TERMS = {
    "Is required": "Is required",
    "Leave it out": "Leave it blank",
    "Null": "Blank",
    "Send": "Enter",
    "Send null": "Leave it blank",
    "false": "“No”",
    "null": "blank",
    "parameter": "filter",
}
"""Terms of the API, and what people read instead."""
AMOUNT = re.compile(r"-?[0-9]+(\.[0-9]+)?")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
RECORD = re.compile(r"(?:([A-Z][a-z]+)|([a-z ]+)) [0-9]+")


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


def missing(name: str, label: str, verb: str) -> str:
    """Return what a form says of a required field that is blank, like `Enter a name`, without a period."""
    noun = label if label[:2].isupper() else label[:1].lower() + label[1:]
    return MISSING.get(name) or f"{verb} {'an' if AN.match(noun) else 'a'} {noun}"


def in_words(sentence: str, names: Collection[str], terms: dict[str, str] | None = None) -> str:
    """Return a sentence of the API in the words of people, such as labels for the names of fields.

    `names` are those of fields, and `terms` are more of the API's terms, each with what people read instead.
    """
    terms = TERMS | (terms or {})

    def word(found: re.Match[str]) -> str:
        kind, text = found.groups()
        name = text.strip("`")
        if kind == FOR_CALLERS:
            return ""
        if kind == NAME:
            return isolated(text)
        if text in terms:
            return terms[text]
        if name in names:
            return f"“{field_label(name)}”"
        if DAY.fullmatch(text):
            return short_day(text)
        if AMOUNT.fullmatch(text):
            return number(text)
        if record := RECORD.fullmatch(text):
            return f"This {record[1].lower()}" if record[1] else f"another {record[2]}"
        return word_of(name).lower() if "`" in text else ", ".join(map(word_of, text.split(", ")))

    return MARKS.sub(word, marked(sentence))
