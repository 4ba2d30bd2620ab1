"""Data of the demo: two agencies with their people and clients, kinds of project, plugins and tickets."""

from pathlib import Path
from typing import Literal, NamedTuple


class Contact(NamedTuple):
    """A person at a client."""

    first_name: str
    last_name: str
    role: str
    job_title: str


class Customer(NamedTuple):
    """A client of an agency."""

    name: str
    city: str
    country: str
    currency: str
    hourly_rate: str | None
    status: Literal["prospect", "active", "archived"]
    tags: list[str]
    contacts: list[Contact]


class Person(NamedTuple):
    """A member of an agency's team."""

    name: str
    role: str
    hourly_rate: str | None
    cost_rate: str


class Agency(NamedTuple):
    """An agency."""

    account: dict[str, str]
    logo: bytes
    domain: str
    people: list[Person]
    customers: list[Customer]


class Kind(NamedTuple):
    """A kind of project: how it is billed, how many days and hours it takes, its stages and tasks."""

    name: str
    billing_type: str
    days: int
    hours: int
    stages: list[str]
    tasks: list[str]


class PluginKind(NamedTuple):
    """A plugin that sites use; the newest version first."""

    slug: str
    name: str
    versions: tuple[str, ...]


class Question(NamedTuple):
    """What a client asks in a ticket, the agency's answer, and the client's reply to it."""

    subject: str
    description: str
    type: str
    priority: str
    answer: str
    thanks: str | None


TAGS = {
    "Retainer": "#2f9e44",
    "Website": "#1971c2",
    "E-commerce": "#e8590c",
    "Brand": "#9c36b5",
    "Late payer": "#e03131",
    "Urgent": "#f08c00",
    "Waiting": "#868e96",
}
KINDS = [
    Kind("Website relaunch", "fixed_fee", 170, 560, ["Concept", "Design", "Build", "Launch"],
         ["Kick-off workshop", "Site map and content plan", "Wireframes", "Screen design", "Design system",
          "Templates", "Content migration", "Forms and consent", "Device testing", "Go live"]),
    Kind("Care plan", "retainer", 400, 700, [],
         ["Plugin updates", "Monthly report", "Content changes", "Performance check", "Backup test", "Small fixes"]),
    Kind("Online shop", "time_and_materials", 220, 800, ["Catalogue", "Checkout", "Opening"],
         ["Product data import", "Category pages", "Payment providers", "Shipping rules", "Order emails",
          "Tax settings", "Search and filters", "Load test", "Team training"]),
    Kind("Brand identity", "fixed_fee", 100, 320, ["Strategy", "Drafts", "Manual"],
         ["Interviews", "Mood boards", "Logo drafts", "Colours and type", "Stationery", "Brand manual"]),
    Kind("Landing pages", "time_and_materials", 75, 240, [],
         ["Copy", "Layout", "Build", "Tracking", "A/B test"]),
    Kind("Search audit", "fixed_fee", 40, 150, [],
         ["Crawl", "Keyword research", "Findings", "Workshop"]),
    Kind("Newsletter", "time_and_materials", 150, 330, [],
         ["Template", "Sign-up forms", "Segments", "First campaign"]),
    Kind("Accessibility", "time_and_materials", 90, 280, ["Audit", "Repair"],
         ["Screen reader test", "Contrast and focus", "Forms", "Documents", "Statement"]),
]  # fmt: skip
INTERNAL = ["Agency website", "Training", "New business"]
WORK = [
    "Drafts", "Second round after feedback", "Mobile layouts", "Icons", "Handover to development",
    "Components", "Fixes after review", "Data migration", "Integration", "Code review",
    "Call with the client", "Weekly meeting", "Client emails", "Planning",
    "Updates", "Bug investigation", "Content changes", "Backup check",
]  # fmt: skip
"""Descriptions of time entries."""
PLUGINS = [
    PluginKind("woocommerce", "WooCommerce", ("9.8.5", "9.8.5", "9.7.1", "8.9.3")),
    PluginKind("wordpress-seo", "Yoast SEO", ("25.1", "25.1", "24.9")),
    PluginKind("contact-form-7", "Contact Form 7", ("6.0.6", "6.0.6", "5.9.8")),
    PluginKind("wp-rocket", "WP Rocket", ("3.18.3", "3.17.4")),
    PluginKind("advanced-custom-fields", "Advanced Custom Fields", ("6.4.2", "6.4.2", "6.3.12")),
    PluginKind("wordfence", "Wordfence Security", ("8.0.5", "8.0.5", "7.11.7")),
    PluginKind("updraftplus", "UpdraftPlus", ("1.25.5", "1.24.12")),
    PluginKind("redirection", "Redirection", ("5.5.2", "5.5.2")),
]
QUESTIONS = [
    Question("Checkout shows the wrong tax", "Orders from Norway are charged 19 % VAT.", "incident", "high",
             "Thanks for reporting this. We can reproduce it and will correct the tax table today.",
             "It's right now, thank you!"),
    Question("How do I add a team member?", "We have a new colleague for the team page.", "question", "low",
             "Go to Team, Add new: name, photo and position. Shall we do it for you this time?", None),
    Question("Contact form sends nothing", "We have received no messages since Monday.", "incident", "urgent",
             "The mail server rejected the form's sender address. We fixed it; please try again.", "Works again."),
    Question("Please publish the winter banner", "The file is in the shared folder.", "change_request", "normal",
             "It is live, and will be removed at the end of the month.", None),
    Question("Site is slow in the evening", "The home page takes ten seconds to load.", "problem", "high",
             "A backup ran at that time. We moved it to the night and will keep an eye on it.", "Much better."),
    Question("Duplicate newsletter subscribers", "Some people are on the list twice.", "problem", "normal",
             "We will remove the duplicates and make the address unique.", None),
    Question("New opening hours", "From next week we open at nine.", "change_request", "normal",
             "Updated on the contact page and in the footer.", "Great, thanks!"),
    Question("Can you renew the font licence?", "The invoice came to us by mistake.", "task", "low",
             "Please forward it to us; we will take care of it.", None),
]  # fmt: skip
STREETS = {
    "AT": ("Neubaugasse {}", "Lindengasse {}"),
    "DE": ("Lindenallee {}", "Marktstraße {}", "Schillerstraße {}", "Am Stadtpark {}", "Kirchgasse {}"),
    "DK": ("Strandvejen {}", "Vestergade {}"),
    "FR": ("{} rue de la République", "{} quai Saint-Antoine"),
    "NO": ("Strandgaten {}", "Nygårdsgaten {}"),
    "US": ("{} Mill Lane", "{} Station Road", "{} Park Avenue", "{} Bridge Street"),
}
CITIES = {
    "Hamburg": "20095", "Berlin": "10115", "Leipzig": "04109", "Dresden": "01067", "Bergen": "5003", "Lyon": "69002",
    "Potsdam": "14467", "Aarhus": "8000", "München": "80331", "Köln": "50667", "Wien": "1070", "Kiel": "24103",
    "Portland": "OR 97205", "Seattle": "WA 98101", "Bend": "OR 97701", "Astoria": "OR 97103", "Tacoma": "WA 98402",
}  # fmt: skip
"""Postal codes; those of American cities follow their state."""
VAT_NUMBERS = {"AT": "ATU{:08}", "DE": "DE1{:08}", "DK": "DK{:08}", "FR": "FR40{:09}", "NO": "NO9{:08}MVA"}
"""Forms of VAT numbers. The United States have none."""

PHONES = {
    "AT": "+43 1 555 01{:02}", "DE": "+49 30 23125 0{:02}", "DK": "+45 555 01{:02}", "FR": "+33 4 65 71 01 {:02}",
    "NO": "+47 555 01{:02}", "US": "+1 206 555 01{:02}",
}  # fmt: skip
"""Forms of telephone numbers: those that regulators keep for films, or numbers with too few digits to be anyone's."""

LOGOS = Path(__file__).parent / "logos"
"""The logos of the agencies. Their letters are outlines, which look the same without the font."""

NORTHLIGHT = Agency(
    {"name": "Northlight Studio", "plan": "agency", "currency": "EUR", "timezone": "Europe/Berlin",
     "hourly_rate": "98.00", "tax_rate": "19",
     "legal_name": "Northlight Studio GmbH", "address_line1": "Speicherstraße 12", "postal_code": "20457",
     "city": "Hamburg", "country": "DE", "vat_number": "DE123456788", "registration_number": "HRB 123456",
     "email": "office@northlight.example", "phone": "+49 40 5550 120", "website": "https://northlight.example",
     "iban": "DE89370400440532013000", "bic": "COBADEFFXXX", "bank_name": "Commerzbank",
     "document_color": "#1f4f8f",
     "invoice_introduction_en": "Thank you for your order. For our work, we charge:",
     "invoice_introduction_de": "Vielen Dank für Ihren Auftrag. Für unsere Leistungen berechnen wir:",
     "invoice_terms_en": "Please quote the number of this invoice when you pay.",
     "invoice_terms_de": "Bitte geben Sie bei der Überweisung die Rechnungsnummer an.",
     "document_footer_en": "Managing directors: Lena Hartwig, Sofia Rossi · Amtsgericht Hamburg, HRB 123456",
     "document_footer_de": "Geschäftsführung: Lena Hartwig, Sofia Rossi · Amtsgericht Hamburg, HRB 123456"},
    (LOGOS / "northlight.svg").read_bytes(),
    "northlight.example",
    [
        Person("Lena Hartwig", "admin", "130.00", "62.00"),
        Person("Omar Said", "member", "105.00", "44.50"),
        Person("Greta Nilsson", "member", "105.00", "43.00"),
        Person("Paul Adler", "member", None, "36.00"),
        Person("Mira Kovač", "member", "110.00", "47.00"),
        Person("Jonas Weber", "member", None, "31.50"),
        Person("Aylin Demir", "member", "98.00", "39.00"),
        Person("Tom Fischer", "member", None, "28.00"),
        Person("Sofia Rossi", "admin", "120.00", "55.00"),
    ],
    [
        Customer("Bergmann Optik", "Hamburg", "DE", "EUR", "110.00", "active", ["Website", "Retainer"],
                 [Contact("Jana", "Bergmann", "decision_maker", "Owner"), Contact("Timo", "Lenz", "technical", "IT")]),
        Customer("Café Morgenrot", "Berlin", "DE", "EUR", None, "active", ["Brand"],
                 [Contact("Selin", "Aydin", "decision_maker", "Owner")]),
        Customer("Dachwerk Krause", "Leipzig", "DE", "EUR", "95.00", "active", ["Website"],
                 [Contact("Uwe", "Krause", "decision_maker", "Managing director"),
                  Contact("Petra", "Voigt", "billing", "Bookkeeping")]),
        Customer("Elbe Logistik", "Dresden", "DE", "EUR", "125.00", "active", ["Website", "Late payer"],
                 [Contact("Nadine", "Scholz", "general", "Marketing"),
                  Contact("Ralf", "Otto", "billing", "Accounts payable")]),
        Customer("Fjordlys AS", "Bergen", "NO", "NOK", "1450.00", "active", ["E-commerce", "Retainer"],
                 [Contact("Ingrid", "Solheim", "decision_maker", "Chief executive"),
                  Contact("Lars", "Moen", "technical", "Developer")]),
        Customer("Galerie Lumière", "Lyon", "FR", "EUR", None, "active", ["Brand", "Website"],
                 [Contact("Camille", "Moreau", "decision_maker", "Director")]),
        Customer("Hofladen Sonnenfeld", "Potsdam", "DE", "EUR", "85.00", "active", ["E-commerce"],
                 [Contact("Anke", "Thiele", "decision_maker", "Owner")]),
        Customer("Ibsen Møbler", "Aarhus", "DK", "DKK", "950.00", "active", ["E-commerce"],
                 [Contact("Mette", "Ibsen", "decision_maker", "Owner"),
                  Contact("Jonas", "Holm", "technical", "Shop manager")]),
        Customer("Kanzlei Reuter", "München", "DE", "EUR", "140.00", "active", ["Retainer"],
                 [Contact("Dr. Helene", "Reuter", "decision_maker", "Partner"),
                  Contact("Sven", "Brandt", "billing", "Office")]),
        Customer("Ludwig & Söhne", "Köln", "DE", "EUR", None, "prospect", [],
                 [Contact("Markus", "Ludwig", "decision_maker", "Managing director")]),
        Customer("Musikschule Allegro", "Wien", "AT", "EUR", "90.00", "active", ["Website"],
                 [Contact("Theresa", "Gruber", "general", "Secretary")]),
        Customer("Nordwind Reisen", "Kiel", "DE", "EUR", "105.00", "archived", ["Website", "Late payer"],
                 [Contact("Frauke", "Petersen", "decision_maker", "Owner")]),
    ],
)  # fmt: skip
HARBOUR = Agency(
    {"name": "Harbour & Pine", "plan": "scale", "currency": "USD", "timezone": "America/Los_Angeles",
     "hourly_rate": "115.00", "tax_rate": "8.25",
     "legal_name": "Harbour & Pine LLC", "address_line1": "410 Marine Drive", "postal_code": "97103",
     "city": "Astoria", "region": "Oregon", "country": "US", "registration_number": "EIN 00-0000000",
     "email": "hello@harbourpine.example", "phone": "+1 503 555 0142", "website": "https://harbourpine.example",
     "document_color": "#1c6b4a", "document_footer_en": "Harbour & Pine LLC · Astoria, Oregon"},
    (LOGOS / "harbour.svg").read_bytes(),
    "harbourpine.example",
    [
        Person("Beth Carver", "admin", "150.00", "70.00"),
        Person("Andre Silva", "member", None, "48.00"),
        Person("Kim Nguyen", "member", "125.00", "52.00"),
    ],
    [
        Customer("Alder Coffee Roasters", "Portland", "US", "USD", "135.00", "active", ["E-commerce"],
                 [Contact("Maya", "Whitfield", "decision_maker", "Founder")]),
        Customer("Blue Heron Dental", "Seattle", "US", "USD", None, "active", ["Website"],
                 [Contact("Daniel", "Okafor", "decision_maker", "Practice owner"),
                  Contact("Ruth", "Hale", "billing", "Office manager")]),
        Customer("Cedar & Stone Builders", "Bend", "US", "USD", "120.00", "active", ["Website", "Retainer"],
                 [Contact("Luis", "Ortega", "decision_maker", "Owner")]),
        Customer("Driftwood Yoga", "Astoria", "US", "USD", "90.00", "prospect", ["Brand"],
                 [Contact("Hannah", "Pierce", "general", "Studio manager")]),
        Customer("Evergreen Outfitters", "Tacoma", "US", "USD", "150.00", "active", ["E-commerce", "Retainer"],
                 [Contact("Priya", "Natarajan", "decision_maker", "Head of digital"),
                  Contact("Cole", "Jensen", "technical", "Developer")]),
    ],
)  # fmt: skip
