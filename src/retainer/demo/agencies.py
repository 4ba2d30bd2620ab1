"""The demo's two agencies: their people, their clients, and the kinds of project they do."""

from typing import Any, NamedTuple

TAGS = {
    "Retainer": "#2f9e44",
    "Website": "#1971c2",
    "E-commerce": "#e8590c",
    "Brand": "#9c36b5",
    "Late payer": "#e03131",
    "Urgent": "#f08c00",
    "Waiting": "#868e96",
}


class Agency(NamedTuple):
    """An agency; `people` are name, role, hourly rate and cost rate."""

    name: str
    plan: str
    currency: str
    timezone: str
    hourly_rate: str
    tax_rate: str
    domain: str
    people: list[tuple[str, str, str | None, str]]
    customers: list[Any]


class Kind(NamedTuple):
    """A kind of project: how it is billed, for how long and how many hours it runs, its stages and its tasks."""

    name: str
    billing_type: str
    days: int
    hours: int
    stages: list[str]
    tasks: list[str]


KINDS = [
    Kind("Website relaunch", "fixed_fee", 170, 560, ["Concept", "Design", "Build", "Launch"],
         ["Kick-off workshop", "Site map and content plan", "Wireframes", "Screen design", "Design system",
          "Templates", "Move the contents", "Forms and consent", "Test on devices", "Go live"]),
    Kind("Care plan", "retainer", 400, 700, [],
         ["Plugin updates", "Monthly report", "Content changes", "Speed check", "Backup test", "Small fixes"]),
    Kind("Online shop", "time_and_materials", 220, 800, ["Catalogue", "Checkout", "Opening"],
         ["Product data import", "Category pages", "Payment providers", "Shipping rules", "Order e-mails",
          "Tax settings", "Search and filters", "Load test", "Train the team"]),
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
INTERNAL = ["Own website", "Learning", "New business"]
WORK = {
    "Design": ["Drafts", "Second round after feedback", "Details for mobile", "Icons", "Handover to build"],
    "Build": ["Components", "Fixes after review", "Data migration", "Integration", "Pull request review"],
    "Talk": ["Call with the client", "Weekly meeting", "Answering questions by e-mail", "Planning"],
    "Care": ["Updates", "Looking into a report", "Changing texts", "Checking backups"],
}
"""What people write on their time, by the kind of work."""

# name, city, country, currency, hourly rate, status, tags, contacts (first name, last name, role, job title)
PLUGINS = [
    ("woocommerce", "WooCommerce", ("9.8.5", "9.8.5", "9.7.1", "8.9.3")),
    ("wordpress-seo", "Yoast SEO", ("25.1", "25.1", "24.9")),
    ("contact-form-7", "Contact Form 7", ("6.0.6", "6.0.6", "5.9.8")),
    ("wp-rocket", "WP Rocket", ("3.18.3", "3.17.4")),
    ("advanced-custom-fields", "Advanced Custom Fields", ("6.4.2", "6.4.2", "6.3.12")),
    ("wordfence", "Wordfence Security", ("8.0.5", "8.0.5", "7.11.7")),
    ("updraftplus", "UpdraftPlus", ("1.25.5", "1.24.12")),
    ("redirection", "Redirection", ("5.5.2", "5.5.2")),
]
"""What sites run: slug, name, and versions, the newest first."""
ASKED = [
    (
        "Checkout shows the wrong tax",
        "Orders from Norway are charged 19 %.",
        "incident",
        "high",
        "Thank you for telling us. We see the same and correct the tax table today.",
        "It is right now, thank you!",
    ),
    (
        "How do I add a team member?",
        "We have a new colleague for the team page.",
        "question",
        "low",
        "Under Team, Add new: name, photo, and the order. Shall we do it this once?",
        None,
    ),
    (
        "Contact form sends nothing",
        "Since Monday no message has reached us.",
        "incident",
        "urgent",
        "The mail server refused the form's sender. We have changed it; please try once.",
        "Works again.",
    ),
    (
        "Please put the winter banner live",
        "The file is in the shared folder.",
        "change_request",
        "normal",
        "It is live, and will be taken down on 1 February.",
        None,
    ),
    (
        "Site is slow in the evening",
        "The start page takes ten seconds.",
        "problem",
        "high",
        "A backup runs at that hour. We have moved it to the night and watch the times.",
        "Much better.",
    ),
    (
        "Newsletter sign-up twice",
        "Some people are in the list twice.",
        "problem",
        "normal",
        "We remove the doubles and make the address unique.",
        None,
    ),
    (
        "New opening hours",
        "From next week we open at nine.",
        "change_request",
        "normal",
        "Changed on the contact page and in the footer.",
        "Great, thanks!",
    ),
    (
        "Can you renew the font licence?",
        "The invoice came to us by mistake.",
        "task",
        "low",
        "Please forward it; we take care of it.",
        None,
    ),
]
"""What clients ask: subject, description, type, priority, the agency's answer, and what they say to it."""
STREETS = ("Mill Lane", "Station Road", "Harbour Street", "Park Avenue", "Linden Square", "Bridge Street")
NORTHLIGHT_CUSTOMERS = [
    ("Bergmann Optik", "Hamburg", "DE", "EUR", "110.00", "active", ["Website", "Retainer"],
     [("Jana", "Bergmann", "decision_maker", "Owner"), ("Timo", "Lenz", "technical", "IT")]),
    ("Café Morgenrot", "Berlin", "DE", "EUR", None, "active", ["Brand"],
     [("Selin", "Aydin", "decision_maker", "Owner")]),
    ("Dachwerk Krause", "Leipzig", "DE", "EUR", "95.00", "active", ["Website"],
     [("Uwe", "Krause", "decision_maker", "Managing director"), ("Petra", "Voigt", "billing", "Bookkeeping")]),
    ("Elbe Logistik", "Dresden", "DE", "EUR", "125.00", "active", ["Website", "Late payer"],
     [("Nadine", "Scholz", "general", "Marketing"), ("Ralf", "Otto", "billing", "Accounts payable")]),
    ("Fjordlys AS", "Bergen", "NO", "NOK", "1450.00", "active", ["E-commerce", "Retainer"],
     [("Ingrid", "Solheim", "decision_maker", "Chief executive"), ("Lars", "Moen", "technical", "Developer")]),
    ("Galerie Lumière", "Lyon", "FR", "EUR", None, "active", ["Brand", "Website"],
     [("Camille", "Moreau", "decision_maker", "Director")]),
    ("Hofladen Sonnenfeld", "Potsdam", "DE", "EUR", "85.00", "active", ["E-commerce"],
     [("Anke", "Thiele", "decision_maker", "Owner")]),
    ("Ibsen Møbler", "Aarhus", "DK", "DKK", "950.00", "active", ["E-commerce"],
     [("Mette", "Ibsen", "decision_maker", "Owner"), ("Jonas", "Holm", "technical", "Shop manager")]),
    ("Kanzlei Reuter", "München", "DE", "EUR", "140.00", "active", ["Retainer"],
     [("Dr. Helene", "Reuter", "decision_maker", "Partner"), ("Sven", "Brandt", "billing", "Office")]),
    ("Ludwig & Söhne", "Köln", "DE", "EUR", None, "prospect", [],
     [("Markus", "Ludwig", "decision_maker", "Managing director")]),
    ("Musikschule Allegro", "Wien", "AT", "EUR", "90.00", "active", ["Website"],
     [("Theresa", "Gruber", "general", "Secretary")]),
    ("Nordwind Reisen", "Kiel", "DE", "EUR", "105.00", "archived", ["Website", "Late payer"],
     [("Frauke", "Petersen", "decision_maker", "Owner")]),
]  # fmt: skip
HARBOUR_CUSTOMERS = [
    ("Alder Coffee Roasters", "Portland", "US", "USD", "135.00", "active", ["E-commerce"],
     [("Maya", "Whitfield", "decision_maker", "Founder")]),
    ("Blue Heron Dental", "Seattle", "US", "USD", None, "active", ["Website"],
     [("Daniel", "Okafor", "decision_maker", "Practice owner"), ("Ruth", "Hale", "billing", "Office manager")]),
    ("Cedar & Stone Builders", "Bend", "US", "USD", "120.00", "active", ["Website", "Retainer"],
     [("Luis", "Ortega", "decision_maker", "Owner")]),
    ("Driftwood Yoga", "Astoria", "US", "USD", "90.00", "prospect", ["Brand"],
     [("Hannah", "Pierce", "general", "Studio manager")]),
    ("Evergreen Outfitters", "Tacoma", "US", "USD", "150.00", "active", ["E-commerce", "Retainer"],
     [("Priya", "Natarajan", "decision_maker", "Head of digital"), ("Cole", "Jensen", "technical", "Developer")]),
]  # fmt: skip

NORTHLIGHT = Agency(
    "Northlight Studio", "agency", "EUR", "Europe/Berlin", "98.00", "19", "northlight.example",
    [
        ("Lena Hartwig", "admin", "130.00", "62.00"),
        ("Omar Said", "member", "105.00", "44.50"),
        ("Greta Nilsson", "member", "105.00", "43.00"),
        ("Paul Adler", "member", None, "36.00"),
        ("Mira Kovač", "member", "110.00", "47.00"),
        ("Jonas Weber", "member", None, "31.50"),
        ("Aylin Demir", "member", "98.00", "39.00"),
        ("Tom Fischer", "member", None, "28.00"),
        ("Sofia Rossi", "admin", "120.00", "55.00"),
    ],
    NORTHLIGHT_CUSTOMERS,
)  # fmt: skip
HARBOUR = Agency(
    "Harbour & Pine", "scale", "USD", "America/Los_Angeles", "115.00", "8.25", "harbourpine.example",
    [
        ("Beth Carver", "admin", "150.00", "70.00"),
        ("Andre Silva", "member", None, "48.00"),
        ("Kim Nguyen", "member", "125.00", "52.00"),
    ],
    HARBOUR_CUSTOMERS,
)  # fmt: skip
