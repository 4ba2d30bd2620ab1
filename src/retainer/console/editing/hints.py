"""What forms say about fields, by table and field: what a blank one means, and what else helps to fill it in."""

DATE_TODAY = "If blank: today."
DUE = "Not before “Start”."
SETTLED = "Billed outside of Retainer, such as by a program that you used before."

HINTS: dict[str, dict[str, str]] = {
    "clients": {
        "early_payment_discount_percent": "If blank: the account's discount.",
        "hourly_rate": "If blank: the user's rate, else the account's.",
        "number": "Unique in the account, ignoring case. If blank: the next number of the series, like C-0001.",
        "payment_terms_days": "If blank: the account's terms.",
        "tax_rate": "If blank: the account's tax rate.",
    },
    "expenses": {
        "amount": "What was paid, never 0; negative for a refund.",
        "client_id": "Follows from the project. Blank for costs of the agency itself.",
        "date": DATE_TODAY,
        "is_settled": SETTLED,
    },
    "external_contacts": {
        "email": "Unique within the client, ignoring case.",
        "first_name": "One of “First name”, “Last name” and “Email” is required.",
    },
    "invoices": {
        "due_date": "If blank: “Issued” plus the client's payment terms.",
        "issue_date": "If blank: the day of issue.",
        "service_from": "If blank: when it is issued, that of the work on its lines.",
        "service_to": "If blank: as for “Service from”.",
    },
    "milestones": {"due_date": DUE},
    "projects": {
        "budget_amount": "Net. Today warns at 80%.",
        "budget_minutes": "Hours. Today warns at 80%.",
        "client_id": "Blank for internal work, which is never billed.",
        "code": "A code of your own, like RELAUNCH.",
        "due_date": DUE,
        "fixed_fee": "Only for the billing type “Fixed fee”.",
        "hourly_rate": "If blank: the client's rate, else the user's, else the account's.",
        "retainer_amount": "Monthly price. Only for the billing type “Retainer”.",
    },
    "quotes": {"issue_date": DATE_TODAY, "valid_until": "If blank: 30 days after “Issued”."},
    "sites": {
        "client_id": "Blank for the agency's own sites.",
        "expected_status": "If blank: 200 to 399.",
        "name": "If blank: the host of “URL”.",
        "url": "Unique in the account.",
    },
    "tags": {"color": "If blank: none.", "name": "Unique in the account, ignoring case."},
    "tasks": {"due_date": DUE, "milestone_id": "A milestone of the same project."},
    "tickets": {"requester_email": "If blank: the contact's.", "requester_name": "If blank: the contact's."},
    "time_entries": {
        "client_id": "One of the four is required.",
        "date": "If blank: the day of “Started”, else today.",
        "ended_at": "If blank: start plus duration.",
        "hourly_rate": "If blank: that of the project, else client, user, account.",
        "is_settled": SETTLED,
    },
}

OF_NEW_DOCUMENTS = {
    "notes": "If blank: the introduction in the settings, in the client's language.",
    "tax_exemption_reason": "If blank: the reason in the settings, in the client's language.",
    "terms": "If blank: the terms in the settings, in the client's language.",
}
HINTS_OF_NEW = {"invoices": OF_NEW_DOCUMENTS, "quotes": OF_NEW_DOCUMENTS}
"""What holds for new records alone: a text that is cleared later stays blank."""


def hint_of(table: str, name: str, use: str) -> str:
    """Return what a form says about a field of a record that it creates or changes; empty if its label says all."""
    of_new = HINTS_OF_NEW.get(table, {}) if use == "Create" else {}
    return of_new.get(name) or HINTS.get(table, {}).get(name, "")
