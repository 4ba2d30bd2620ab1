"""SPF: what is wrong with the record by which a domain names the servers that send its mail (RFC 7208)."""

import re
from collections.abc import Callable
from ipaddress import ip_network

MAX_LOOKUPS = 10
"""Terms of a record and of those that it includes that may ask name servers (RFC 7208, 4.6.4)."""
TERM = re.compile(r"([-+~?]?)([a-z][a-z0-9_.-]*)([:=/]?)(.*)")
LOOKING_UP = {"include", "a", "mx", "ptr", "exists"}
MECHANISMS = {"all", "ip4", "ip6", *LOOKING_UP}
NONE = "{} has no SPF record, so many servers take its mail for spam. Add one (TXT) that names your mail server."
SEVERAL = "{} has {} SPF records, so none counts. Leave one."
EMPTY = "The SPF record of {} names {}, which has no SPF record, so none of it counts. Correct or remove that name."
MISTAKE = "The SPF record of {} does not count because of a mistake: {}"
TOO_MANY = (
    "The SPF record of {} needs more than 10 queries of name servers, so it does not count. Replace include, a and mx "
    "by ip4 and ip6, or remove services that you do not use."
)
OPEN = "The SPF record of {} ends with +all, so everybody may send in its name. End it with -all or ~all."
NEUTRAL = "The SPF record of {} does not say that other servers must not send in its name. End it with -all or ~all."
LookUp = Callable[[str], list[str]]
"""Returns the TXT records of a name; none if it has none. Raises DNSException."""


class SpfMistake(Exception):
    """A mistake for which servers ignore the whole record; operators read the message."""


def find_spf(domain: str, ask: LookUp) -> list[str]:
    """Return what is wrong with the SPF record of a domain."""
    try:
        others = SpfReader(domain, ask).read(domain)
    except SpfMistake as mistake:
        return [str(mistake)]
    return [OPEN.format(domain)] if others == "+" else [NEUTRAL.format(domain)] if others == "?" else []


class SpfReader:
    """Reads the record of a domain, and those that it includes."""

    def __init__(self, domain: str, ask: LookUp) -> None:
        self.domain, self.ask, self.lookups = domain, ask, 0

    def read(self, name: str) -> str:
        """Return what a record says of servers that it does not name: `-`, `~`, `?` or `+`. Raises SpfMistake."""
        redirect = ""
        for term in self._record_of(name)[1:]:
            qualifier, kind, mark, value = self._parts_of(name, term)
            if kind == "all":
                return qualifier or "+"
            if kind == "redirect":
                redirect = value
            elif kind in LOOKING_UP:
                self._count()
                if kind == "include" and "%" not in value:
                    self.read(value)
            elif kind in {"ip4", "ip6"}:
                self._require_network(name, term, value if mark == ":" else "")
        if not redirect:
            return "?"
        self._count()
        return self.read(redirect) if "%" not in redirect else "-"

    def _record_of(self, name: str) -> list[str]:
        found = [record.lower().split() for record in self.ask(name)]
        records = [terms for terms in found if terms[:1] == ["v=spf1"]]
        if len(records) > 1:
            raise SpfMistake(SEVERAL.format(name, len(records)))
        if not records:
            raise SpfMistake(NONE.format(name) if name == self.domain else EMPTY.format(self.domain, name))
        return records[0]

    def _parts_of(self, name: str, term: str) -> tuple[str, str, str, str]:
        found = TERM.fullmatch(term)
        qualifier, kind, mark, value = found.groups() if found else ("", "", "", "")
        is_modifier = mark == "=" and kind not in MECHANISMS and not qualifier
        needs_value = kind in {"include", "exists", "redirect"}
        if not (is_modifier or (kind in MECHANISMS and mark != "=")) or (needs_value and not value):
            raise SpfMistake(MISTAKE.format(name, term))
        return qualifier, kind, mark, value

    def _require_network(self, name: str, term: str, value: str) -> None:
        try:
            network = ip_network(value, strict=False)
        except ValueError:
            raise SpfMistake(MISTAKE.format(name, term)) from None
        if f"ip{network.version}:" not in term:
            raise SpfMistake(MISTAKE.format(name, term))

    def _count(self) -> None:
        self.lookups += 1
        if self.lookups > MAX_LOOKUPS:
            raise SpfMistake(TOO_MANY.format(self.domain))
