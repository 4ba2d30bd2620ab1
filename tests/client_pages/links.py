"""Links of documents, and what a client does with them."""

from testing.agencies import SITE

LINES = [{"description": "Design", "unit_price": "500", "tax_rate": "0"}]
OPTION = {"description": "Photographs", "unit_price": "480", "tax_rate": "0", "is_optional": True}


def link(api, document, **members):
    """Create a link to a record; return the path of its page."""
    kind = "quotes" if "valid_until" in document else "invoices"
    made = api.post(f"/{kind}/{document['id']}/links", members).data
    assert made["url"].startswith(f"{SITE}/client?token=")
    return made["url"].removeprefix(SITE)


def send_quote(api, **members):
    return api.make("/quotes", **{"status": "sent", "lines": LINES, "title": "Shop", **members})


def answer(client, path, **fields):
    return client.submit(path, **fields)
