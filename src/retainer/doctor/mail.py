"""Mail: whether the mail server takes a message, and whether the domain of its sender lets others trust it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid

from dns.exception import DNSException
from dns.resolver import NXDOMAIN, NoAnswer, Resolver

from retainer.doctor.findings import Finding, Outcome
from retainer.doctor.spf import LookUp, find_spf
from retainer.mail.addresses import wire_address
from retainer.mail.sender.relay import Dialogue, Mail, NotTaken, Relay

MAX_LABELS = 7
SECONDS = 5
"""Time limit of a question to name servers."""
TEXT = """This message shows that the mail server of Retainer takes mail for this address.

Look at its headers: Authentication-Results should say spf=pass, dkim=pass and dmarc=pass. If it says dkim=none, let
the mail server sign messages of {domain}.
"""
NO_DMARC = "{} has no DMARC record. Add one (TXT) at _dmarc.{}, to begin with: v=DMARC1; p=none"
TWO_DMARC = "_dmarc.{} has {} DMARC records, so none counts. Leave one."
NO_POLICY = "The DMARC record of {} does not say what servers should do. Add p=none, p=quarantine or p=reject."
POLICIES = {"none", "quarantine", "reject"}


def look_up(name: str) -> list[str]:
    try:
        answer = Resolver().resolve(name, "TXT", lifetime=SECONDS)
    except (NXDOMAIN, NoAnswer):
        return []
    return [b"".join(record.strings).decode("utf-8", "replace") for record in answer]


def examine_mail(relay: Relay, recipient: str, ask: LookUp = look_up) -> list[Outcome]:
    """Check the domain of the sender, and send a test message; return the outcome of each check."""
    domain = relay.sender.rpartition("@")[2]
    checks: dict[str, Callable[[], list[str]]] = {
        "spf": lambda: find_spf(domain, ask),
        "dmarc": lambda: find_dmarc(domain, ask),
        "mail": lambda: send_test(relay, recipient),
    }
    with ThreadPoolExecutor() as together:  # name servers that do not answer are waited for once
        return [*together.map(_checked, checks, checks.values())]


def _checked(check: str, find: Callable[[], list[str]]) -> Outcome:
    outcome = Outcome(check)
    try:
        outcome.add(map(Finding, find()))
    except DNSException as error:
        outcome.skip(f"The name servers did not answer: {error}")
    return outcome


def find_dmarc(domain: str, ask: LookUp) -> list[str]:
    """Return what is wrong with the DMARC record of a domain, or of the nearest one above it that has one (RFC 9989).

    Of a long name, the last seven labels are walked up; the last one alone is a registry's.
    """
    labels = domain.split(".")
    for start in dict.fromkeys((0, *range(max(len(labels) - MAX_LABELS, 1), len(labels) - 1))):
        name = ".".join(labels[start:])
        records = [tags for tags in map(_tags_of, ask(f"_dmarc.{name}")) if tags[:1] == [("v", "DMARC1")]]
        if len(records) > 1:
            return [TWO_DMARC.format(name, len(records))]
        if records:
            policy = dict(records[0]).get("p", "")
            return [] if policy.lower() in POLICIES else [NO_POLICY.format(name)]
    return [NO_DMARC.format(domain, domain)]


def _tags_of(record: str) -> list[tuple[str, str]]:
    pairs = (part.partition("=") for part in record.split(";"))
    return [(name.strip().lower(), value.strip()) for name, _, value in pairs]


def send_test(relay: Relay, recipient: str) -> list[str]:
    """Send a test message; return why it was not taken."""
    domain = relay.sender.rpartition("@")[2]
    message = EmailMessage(SMTP)
    message["From"], message["To"] = relay.sender, recipient
    message["Subject"] = "Test of Retainer's mail"
    message["Date"] = format_datetime(datetime.now(UTC))
    message["Message-ID"], message["Auto-Submitted"] = make_msgid(domain=domain), "auto-generated"
    message.set_content(TEXT.format(domain=domain), cte="quoted-printable")
    content = bytes(message)
    try:
        Dialogue(relay).send(wire_address(recipient), Mail(len(content), [content]))
    except NotTaken as error:
        return [f"{error} {error.trouble}".strip()]
    return []
