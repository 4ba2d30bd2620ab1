"""Sources: what the files of time of other programs look like, each as a declaration."""

from types import MappingProxyType

from retainer.exchange.columns import ImportSource, Ways


def _same(*names: str) -> dict[str, tuple[str, ...]]:
    """Return the columns of fields whose headings are their names."""
    return {name: (name.replace("_", " "),) for name in names}


WHEN: Ways = (("date",), ("start_date",), ("start",))
"""`start` and `end` are moments."""
HOW_LONG: Ways = (("duration",), ("minutes",), ("end",), ("start_time", "end_time"))
"""A `duration` is `1:30:00` or hours."""
TIME = (WHEN, HOW_LONG)
HARVEST = ImportSource(
    "harvest",
    "Harvest",
    {
        **_same("date", "client", "project", "task"),
        "description": ("notes",),
        "duration": ("hours",),
        "billable": ("billable?",),
        "invoiced": ("invoiced?",),
        **_same("first_name", "last_name"),
        "rate": ("billable rate",),
        **_same("currency"),
    },
    ("date", "client", "project", "duration", "first_name", "last_name"),
    TIME,
)
TOGGL = ImportSource(
    "toggl",
    "Toggl Track",
    {
        "person": ("user",),
        **_same("email", "client", "project", "task", "description", "billable"),
        **_same("start_date", "start_time", "end_date", "end_time", "duration", "amount"),
    },
    ("person", "start_date", "start_time", "duration"),
    TIME,
)
CLOCKIFY = ImportSource(
    "clockify",
    "Clockify",
    {
        **_same("project", "client", "description"),
        "task": ("task", "activity"),
        "person": ("user",),
        **_same("email", "billable", "invoiced", "start_date", "start_time", "end_date", "end_time"),
        "duration": ("duration (h)", "duration (decimal)"),
        "rate": ("billable rate",),
    },
    ("project", "start_date", "start_time", "duration"),
    TIME,
)
KIMAI = ImportSource(
    "kimai",
    "Kimai",
    {
        "date": ("date", "datum"),
        "start_time": ("from", "von", "de", "begin", "beginn"),
        "end_time": ("to", "bis", "à", "end", "ende"),
        "duration": ("duration", "dauer", "durée"),
        "currency": ("currency", "währung", "devise", "monnaie"),
        "rate": ("hourly price", "preis pro stunde", "prix horaire"),
        "person": ("name", "nom", "user", "benutzer", "utilisateur"),
        "email": ("e-mail", "email"),
        "client": ("customer", "kunde", "client"),
        "project": ("project", "projekt", "projet"),
        "task": ("activity", "tätigkeit", "activité"),
        "description": ("description", "beschreibung"),
        "billable": ("billable", "abrechenbar", "facturable"),
    },
    ("date", "start_time", "duration", "client", "project", "task"),
    TIME,
)
SOLIDTIME = ImportSource(
    "solidtime",
    "solidtime",
    {
        **_same("description", "billable", "client", "project", "task", "start", "end"),
        "person": ("user_name",),
        "email": ("user_email",),
    },
    ("project", "start", "end", "person"),
    TIME,
)
CSV = ImportSource(
    "csv",
    "a CSV file",
    {
        "id": ("id", "external_id"),
        "person": ("person", "user", "name", "user_name", "mitarbeiter", "benutzer"),
        "first_name": ("first_name", "first name", "vorname"),
        "last_name": ("last_name", "last name", "nachname"),
        "email": ("email", "e-mail", "user_email"),
        "client": ("client", "client_name", "customer", "kunde"),
        "project": ("project", "project_name", "projekt"),
        "task": ("task", "task_name", "activity", "aufgabe", "tätigkeit"),
        "description": ("description", "notes", "note", "beschreibung", "notiz"),
        "date": ("date", "day", "datum"),
        "start_date": ("start_date", "start date"),
        "start_time": ("start_time", "start time"),
        "end_date": ("end_date", "end date"),
        "end_time": ("end_time", "end time"),
        "start": ("start", "started_at"),
        "end": ("end", "ended_at"),
        "duration": ("duration", "hours", "duration_hours", "dauer", "stunden"),
        "minutes": ("minutes", "duration_minutes", "minuten"),
        "billable": ("billable", "abrechenbar"),
        "invoiced": ("invoiced", "is_settled", "billed", "abgerechnet"),
        "rate": ("rate", "hourly_rate", "stundensatz"),
        "amount": ("amount", "betrag"),
        "currency": ("currency", "währung"),
    },
    (),
    TIME,
)
SOURCES = MappingProxyType({each.name: each for each in (HARVEST, TOGGL, CLOCKIFY, KIMAI, SOLIDTIME, CSV)})
