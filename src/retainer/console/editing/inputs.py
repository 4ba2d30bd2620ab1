"""The inputs of a page: the texts that its fields show, and the records and values that they offer."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Self

from sqlalchemy import Table

from retainer.console.controls.control import Field
from retainer.console.controls.plain import ID, Currency
from retainer.console.controls.records import Reference, References, reference_of
from retainer.console.labels import word_of
from retainer.console.names import USED_CURRENCIES, Offer, Only, load_choices, load_names
from retainer.console.page_context import PageContext
from retainer.schema.crm import clients
from retainer.store.tx import Tx
from retainer.web.forms import Form


class Inputs:
    """The inputs of a page, which is drawn after its transaction: `load` reads what they offer, each table once."""

    record: Any = None

    def __init__(self, tx: Tx, context: PageContext, form: Form) -> None:
        self.tx, self.context, self.form = tx, context, form
        self.fields, self.hidden = list[Field](), list[Field]()
        self.choices: dict[tuple[Table, Only], list[Offer] | None] = {}
        self.names: dict[tuple[Table, str], dict[str, str]] = {}
        """The names of the records in a text, by their ids."""
        self.is_loaded = False
        self.used_currencies: set[str] = set()
        self.stored_now: dict[str, str] = {}

    @property
    def language(self) -> str:
        return self.context.person.language

    @property
    def timezone(self) -> str:
        return self.tx.actor.timezone

    def load(self) -> Self:
        """Read the records and the names that the inputs show, and the currencies in use."""
        if self.is_loaded:
            return self
        shown = [*self.shown()]
        if any(isinstance(field.control, Currency) for field, _ in shown):
            self.used_currencies = {self.tx.actor.currency, *(code for (code,) in self.tx.all(USED_CURRENCIES))}
        self._load_names(
            [
                (each.table, text)
                for field, text in shown
                if (each := reference_of(field)) and self._is_named(field, each, text)
            ]
        )
        self.is_loaded = True
        return self

    def _is_named(self, field: Field, reference: Reference | References, text: str) -> bool:
        """Whether the page shows the name of a record that its field does not offer."""
        offered = self._offered(reference.table, reference.only)
        is_one = isinstance(reference, Reference)
        return is_one and (offered is None or field in self.hidden or all(choice.id != text for choice in offered))

    def shown(self) -> Iterable[tuple[Field, str]]:
        """Return the fields with their texts."""
        return [(field, self.text(field)) for field in self.fields]

    def initial(self, _: Field) -> list[str]:
        """Return the texts that a field shows before it is edited."""
        return []

    def texts(self, field: Field) -> list[str]:
        """Return the texts that a field shows: as typed, unless it is secret, or as it is before it is edited."""
        if not field.control.is_shown_again:
            return []
        sent = self.form.texts_of(field.name)
        return (sent if field.control.is_several else sent[-1:]) if field.name in self.form else self.initial(field)

    def text(self, field: Field) -> str:
        return next(iter(self.texts(field)), "")

    def blanks(self, field: Field) -> list[tuple[str, str]]:
        """Return the option for no choice, with the account's currency or language if one of these is then used."""
        own = self.context.person
        said = {"currency": own.currency, "language": word_of(own.language)}
        return [(value, text.format_map(said)) for value, text in field.control.blanks(field)]

    def is_of_other(self, _: Offer) -> bool:
        """Whether a choice belongs to another client than the form is about."""
        return False

    def values(self, field: Field, text: str) -> list[tuple[str, str]]:
        found = [*field.control.options]
        if isinstance(field.control, Currency):
            found.sort(key=lambda option: (option[0] not in self.used_currencies, option[0]))
        options = [Offer(*option) for option in (*self.blanks(field), *found)]
        return [choice.pair for choice in self._with_chosen(options, text, None)]

    def options(self, field: Field, text: str) -> list[Offer] | None:
        """Return the records that a reference offers, with the chosen ones; None if they are too many."""
        reference = reference_of(field)
        found = self._offered(reference.table, reference.only) if reference else []
        if reference is None or found is None:
            return found
        return self._with_chosen([*(Offer(*option) for option in reference.options), *found], text, reference.table)

    def _offered(self, table: Table, only: Only) -> list[Offer] | None:
        if (table, only) not in self.choices:
            self.choices[table, only] = self._load_choices(table, only)
        return self.choices[table, only]

    def name_of(self, field: Field, text: str) -> str:
        """Return a record as a search field names it: `Bergmann Optik (#12)`."""
        reference = reference_of(field)
        found = self._named(reference.table if reference else None, text)
        return f"{found[text]} (#{text})" if text in found else text

    def owner_of(self, table: Table, _: str) -> str:
        """Return the field that says whose a record is, if the role sees only its user's own."""
        return self.context.catalogue.owner_of(table, is_named=True)

    def _with_chosen(self, options: list[Offer], text: str, table: Table | None) -> list[Offer]:
        """Return the options, with one more for a text that is none of them, such as several of them."""
        if not text or any(choice.id == text for choice in options):
            return options
        known = {choice.id: choice.text for choice in options} | self._named(table, text)
        return [*options, Offer(text, ", ".join(known.get(part.strip(), part) for part in text.split(",")))]

    def _named(self, table: Table | None, text: str) -> dict[str, str]:
        """Return the names of records by their ids, which a comma separates, as far as the role sees them."""
        if table is None:
            return {}
        if (table, text) not in self.names:
            self._load_names([(table, text)])
        return self.names[table, text]

    def _load_names(self, shown: Iterable[tuple[Table | None, str]]) -> None:
        """Read the names of the records in texts: those of a table with one statement."""
        ids = defaultdict[tuple[Table, str], dict[str, list[int]]](dict)
        for table, text in shown:
            if table is not None and (table, text) not in self.names:
                parts = [part.strip() for part in text.split(",")]
                ids[table, self.owner_of(table, text)][text] = [int(part) for part in parts if ID.fullmatch(part)]
        for (table, owner), by_text in ids.items():
            names = load_names(self.tx, table, {each for found in by_text.values() for each in found}, owner)
            for text, found in by_text.items():
                self.names[table, text] = {f"{each}": names[each] for each in found if each in names}

    def _load_choices(self, table: Table, only: Only) -> list[Offer] | None:
        owner = self.context.catalogue.owner_of(table, is_named=True)
        found = load_choices(self.tx, table, owner, only=only)
        if found is None or not only:
            return found
        names = load_names(self.tx, clients, {choice.client_id for choice in found if choice.client_id})
        return [
            choice._replace(text=f"{choice.text} ({names[choice.client_id]})") if choice.client_id in names else choice
            for choice in found
        ]
