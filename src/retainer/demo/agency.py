"""Data of the demo: two agencies with their people and clients, kinds of project, plugins and tickets."""

from pathlib import Path
from typing import NamedTuple


class Customer(NamedTuple):
    """A client of an agency, by the fields of the API, with its tags and the person to talk to.

    Telephone numbers are those that regulators keep for films, or have too few digits to be anyone's.
    """

    fields: dict[str, str | None]
    tags: list[str]
    contact: dict[str, str]
    is_archived: bool = False


class Agency(NamedTuple):
    """An agency: its account, people, and clients in the order in which they came. A prospect has just come."""

    name: str
    """Of its domain, and of its logo, whose letters are outlines, which look the same without the font."""
    account: dict[str, str]
    people: list[dict[str, str | None]]
    customers: list[Customer]

    @property
    def domain(self) -> str:
        return f"{self.name}.example"

    @property
    def logo(self) -> bytes:
        return Path(__file__).with_name(f"{self.name}.svg").read_bytes()


def _address(
    line: str, postal_code: str, city: str, country: str = "DE", vat_number: str | None = None
) -> dict[str, str | None]:
    is_abroad = country not in {"DE", "US"}  # where clients pay the tax themselves
    fields = {"address_line1": line, "postal_code": postal_code, "city": city, "country": country}
    return fields | {"vat_number": vat_number, "tax_rate": "0" if is_abroad else None}


def _person(first_name: str, last_name: str, job_title: str, role: str, phone: str) -> dict[str, str]:
    return {"first_name": first_name, "last_name": last_name, "job_title": job_title, "role": role, "phone": phone}


NORTHLIGHT = Agency(
    "northlight",
    {
        "name": "Northlight Studio", "plan": "agency", "currency": "EUR", "timezone": "Europe/Berlin",
        "hourly_rate": "98.00", "tax_rate": "19",
        "legal_name": "Northlight Studio GmbH", "address_line1": "Speicherstraße 12", "postal_code": "20457",
        "city": "Hamburg", "country": "DE", "vat_number": "DE123456788", "registration_number": "HRB 123456",
        "email": "office@northlight.example", "phone": "+49 40 5550 120", "website": "https://northlight.example",
        "iban": "DE89370400440532013000", "bic": "COBADEFFXXX", "bank_name": "Commerzbank", "document_color": "#1f4f8f",
        "invoice_introduction_en": "Thank you for your order. For our work, we charge:",
        "invoice_introduction_de": "Vielen Dank für Ihren Auftrag. Für unsere Leistungen berechnen wir:",
        "invoice_terms_en": "Please quote the number of this invoice when you pay.",
        "invoice_terms_de": "Bitte geben Sie bei der Überweisung die Rechnungsnummer an.",
        "document_footer_en": "Managing directors: Lena Hartwig, Sofia Rossi · Amtsgericht Hamburg, HRB 123456",
        "document_footer_de": "Geschäftsführung: Lena Hartwig, Sofia Rossi · Amtsgericht Hamburg, HRB 123456",
    },
    [
        {"name": "Lena Hartwig", "role": "admin", "hourly_rate": "130.00", "cost_rate": "62.00"},
        {"name": "Omar Said", "role": "member", "hourly_rate": "105.00", "cost_rate": "44.50"},
        {"name": "Greta Nilsson", "role": "member", "hourly_rate": "105.00", "cost_rate": "43.00"},
        {"name": "Paul Adler", "role": "member", "hourly_rate": None, "cost_rate": "36.00"},
        {"name": "Mira Kovač", "role": "member", "hourly_rate": "110.00", "cost_rate": "47.00"},
        {"name": "Aylin Demir", "role": "member", "hourly_rate": "98.00", "cost_rate": "39.00"},
        {"name": "Sofia Rossi", "role": "admin", "hourly_rate": "120.00", "cost_rate": "55.00"},
    ],
    [
        Customer({"name": "Bergmann Optik", "hourly_rate": "110.00", **_address("Lindenallee 12", "20095", "Hamburg")},
                 ["Website", "Retainer"], _person("Jana", "Bergmann", "Owner", "decision_maker", "+49 30 23125 010")),
        Customer({"name": "Café Morgenrot", **_address("Kirchgasse 4", "10115", "Berlin")},
                 ["Brand"], _person("Selin", "Aydin", "Owner", "decision_maker", "+49 30 23125 011")),
        Customer({"name": "Elbe Logistik", "hourly_rate": "125.00", **_address("Am Stadtpark 71", "01067", "Dresden")},
                 ["Website", "Late payer"], _person("Ralf", "Otto", "Accounts payable", "billing", "+49 30 23125 012")),
        Customer({"name": "Fjordlys AS", "currency": "NOK", "hourly_rate": "1450.00",
                  **_address("Strandgaten 19", "5003", "Bergen", "NO")},
                 ["E-commerce", "Retainer"], _person("Lars", "Moen", "Developer", "technical", "+47 555 0112")),
        Customer({"name": "Galerie Lumière",
                  **_address("8 quai Saint-Antoine", "69002", "Lyon", "FR", "FR88100000009")},
                 ["Brand"], _person("Camille", "Moreau", "Director", "decision_maker", "+33 4 65 71 01 14")),
        Customer({"name": "Ibsen Møbler", "currency": "DKK", "hourly_rate": "950.00",
                  **_address("Vestergade 33", "8000", "Aarhus", "DK", "DK10000009")},
                 ["E-commerce"], _person("Mette", "Ibsen", "Owner", "decision_maker", "+45 555 0115")),
        Customer({"name": "Kanzlei Reuter", "hourly_rate": "140.00",
                  **_address("Schillerstraße 2", "80331", "München")},
                 ["Retainer"], _person("Helene", "Reuter", "Partner", "decision_maker", "+49 30 23125 016")),
        Customer({"name": "Musikschule Allegro", "hourly_rate": "90.00", "language": "de",
                  **_address("Neubaugasse 7", "1070", "Wien", "AT", "ATU10000005")},
                 ["Website"], _person("Theresa", "Gruber", "Secretary", "general", "+43 1 555 0117")),
        Customer({"name": "Nordwind Reisen", "hourly_rate": "105.00", **_address("Marktstraße 50", "24103", "Kiel")},
                 ["Late payer"], _person("Frauke", "Petersen", "Owner", "decision_maker", "+49 30 23125 018"),
                 is_archived=True),
        Customer({"name": "Ludwig & Söhne", "status": "prospect", **_address("Lindenallee 90", "50667", "Köln")},
                 [], _person("Markus", "Ludwig", "Managing director", "decision_maker", "+49 30 23125 019")),
    ],
)  # fmt: skip
HARBOUR = Agency(
    "harbourpine",
    {
        "name": "Harbour & Pine", "plan": "scale", "currency": "USD", "timezone": "America/Los_Angeles",
        "hourly_rate": "115.00", "tax_rate": "8.25", "legal_name": "Harbour & Pine LLC",
        "address_line1": "410 Marine Drive", "postal_code": "97103", "city": "Astoria", "region": "Oregon",
        "country": "US", "registration_number": "EIN 00-0000000", "email": "hello@harbourpine.example",
        "phone": "+1 503 555 0142", "website": "https://harbourpine.example", "document_color": "#1c6b4a",
    },
    [
        {"name": "Beth Carver", "role": "admin", "hourly_rate": "150.00", "cost_rate": "70.00"},
        {"name": "Andre Silva", "role": "member", "hourly_rate": None, "cost_rate": "48.00"},
        {"name": "Kim Nguyen", "role": "member", "hourly_rate": "125.00", "cost_rate": "52.00"},
    ],
    [
        Customer({"name": "Blue Heron Dental", **_address("12 Mill Lane", "98101", "Seattle", "US")},
                 ["Website"], _person("Ruth", "Hale", "Office manager", "billing", "+1 206 555 0110")),
        Customer({"name": "Cedar & Stone Builders", "hourly_rate": "120.00",
                  **_address("8 Station Road", "97701", "Bend", "US")},
                 ["Late payer"], _person("Luis", "Ortega", "Owner", "decision_maker", "+1 206 555 0111")),
        Customer({"name": "Evergreen Outfitters", "hourly_rate": "150.00",
                  **_address("77 Park Avenue", "98402", "Tacoma", "US")},
                 ["E-commerce"], _person("Cole", "Jensen", "Developer", "technical", "+1 206 555 0112")),
    ],
)  # fmt: skip
TAGS = {
    "Retainer": "#2f9e44",
    "Website": "#1971c2",
    "E-commerce": "#e8590c",
    "Brand": "#9c36b5",
    "Late payer": "#e03131",
}


class Kind(NamedTuple):
    """A kind of project: how it is billed, how many days and hours it takes, its stages and tasks."""

    name: str
    billing_type: str
    days: int
    hours: int
    stages: list[str]
    tasks: list[str]


KINDS = [
    Kind("Website relaunch", "fixed_fee", 170, 560, ["Concept", "Design", "Build", "Launch"],
         ["Kick-off workshop", "Site map", "Wireframes", "Screen design", "Templates", "Content migration", "Go live"]),
    Kind("Care plan", "retainer", 400, 700, [],
         ["Plugin updates", "Monthly report", "Content changes", "Performance check", "Backup test"]),
    Kind("Online shop", "time_and_materials", 220, 800, ["Catalogue", "Checkout", "Opening"],
         ["Product data import", "Category pages", "Payment providers", "Shipping rules", "Order emails", "Load test"]),
    Kind("Brand identity", "fixed_fee", 100, 320, ["Strategy", "Drafts", "Manual"],
         ["Interviews", "Mood boards", "Logo drafts", "Colours and type", "Brand manual"]),
    Kind("Landing pages", "time_and_materials", 75, 240, [], ["Copy", "Layout", "Build", "Tracking"]),
]  # fmt: skip
INTERNAL = ["Agency website", "Training", "New business"]
WORK = [
    "Drafts", "Second round after feedback", "Mobile layouts", "Handover to development", "Components",
    "Data migration", "Code review", "Call with the client", "Planning", "Updates", "Bug investigation",
]  # fmt: skip
"""Descriptions of time entries."""
PLUGINS = {
    "woocommerce": ("WooCommerce", "9.8.5", "9.7.1"),
    "wordpress-seo": ("Yoast SEO", "25.1", "24.9"),
    "contact-form-7": ("Contact Form 7", "6.0.6", "5.9.8"),
    "wp-rocket": ("WP Rocket", "3.18.3", "3.17.4"),
}
"""The names of plugins by their slugs, each with the newest version and an older one."""


class Question(NamedTuple):
    """What a client asks in a ticket, and the agency's answer."""

    subject: str
    description: str
    type: str
    priority: str
    answer: str


QUESTIONS = [
    Question("Checkout shows the wrong tax", "Orders from Norway are charged 19 % VAT.", "incident", "high",
             "Thanks for reporting this. We can reproduce it and will correct the tax table today."),
    Question("How do I add a team member?", "We have a new colleague for the team page.", "question", "low",
             "Go to Team, Add new: name, photo and position. Shall we do it for you this time?"),
    Question("Contact form sends nothing", "We have received no messages since Monday.", "incident", "urgent",
             "The mail server rejected the form's sender address. We fixed it; please try again."),
    Question("Please publish the winter banner", "The file is in the shared folder.", "change_request", "normal",
             "It is live, and will be removed at the end of the month."),
    Question("Site is slow in the evening", "The home page takes ten seconds to load.", "problem", "high",
             "A backup ran at that time. We moved it to the night and will keep an eye on it."),
]  # fmt: skip
