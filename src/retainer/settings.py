"""Settings, from the environment (`RETAINER_*`), a `.env` file, or files (`RETAINER_*_FILE`)."""

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from decimal import Decimal
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from dotenv import dotenv_values

PREFIX = "RETAINER_"
BASE_PATH = "/api/public/v1"
SQLITE = "sqlite:///"
PUBLIC, NOWHERE = "public", "none"
OF_ORCHESTRATORS = re.compile(r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)")
"""Names of variables that Kubernetes and Docker add to the environment for a service named retainer."""
LINK = re.compile(r"(tcp|udp|sctp)://")
"""The value that they give to `RETAINER_PORT`."""
PASSWORDS = re.compile(r"(?<=://)([^:/?#]*):.*@|([?&](?:ssl)?password=)[^&#]*")

Network = IPv4Network | IPv6Network


class SettingsError(Exception):
    """An invalid setting; the message names the setting, its value and the accepted form."""


class SettingForm(NamedTuple):
    """The form of a value: its description, and the function that reads it and raises ValueError or KeyError."""

    text: str
    read: Callable[[str], Any]


def read_base_url(text: str) -> str:
    """Return a public address without its path of the API. Raises ValueError if it is not one."""
    url = urlsplit(text)
    if url.scheme not in {"http", "https"} or not url.hostname or url.query or url.fragment:
        raise ValueError
    return text.rstrip("/").removesuffix(BASE_PATH)


def database_address(text: str) -> str:
    """Return the URL of a database. Raises ValueError if it is not one."""
    is_file = text.startswith(SQLITE) and text != SQLITE
    if not is_file and not text.startswith(("postgresql://", "postgres://")):
        raise ValueError
    return text


def _valkey_url(text: str) -> str:
    url = urlsplit(text)
    if url.scheme not in {"valkey", "valkeys"} or not url.hostname or url.port == 0:
        raise ValueError
    if not re.fullmatch(r"(/\d*)?", url.path) or url.query or url.fragment:
        raise ValueError
    if find_spec("valkey") is None:
        raise SettingsError('RETAINER_VALKEY_URL needs a library. Install it: pip install "valkey[libvalkey]>=6.2"')
    return text


def _mail_url(text: str) -> str:
    url = urlsplit(text)
    if url.scheme not in {"smtp", "smtps"} or not url.hostname or url.port == 0 or url.path.strip("/") or url.fragment:
        raise ValueError
    if url.query and (url.scheme, url.query) != ("smtp", "tls=none"):
        raise ValueError
    return text


def host_and_port(text: str) -> tuple[str, int]:
    """Return the host and the port of an address. Raises ValueError if it has none."""
    url = urlsplit(f"//{text}")
    if not url.hostname or not url.port or text != url.netloc or url.username is not None:
        raise ValueError
    return url.hostname, url.port


def _place(text: str) -> str:
    if text not in {PUBLIC, NOWHERE}:
        host_and_port(text)
    return text


def _whole(first: int, last: int) -> SettingForm:
    def read(text: str) -> int:
        if not text.isdecimal() or not first <= int(text) <= last:
            raise ValueError
        return int(text)

    return SettingForm(f"a whole number from {first} to {last}", read)


NUMBERS = re.compile(r"\s*\d{1,7}\s*(,\s*[a-z]+=\d{1,7}\s*)*", re.ASCII)
LINE = re.compile(r"[^\0-\x1f\x7f]{,191}")
MAILBOX_FORM = re.compile(r"[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,120}", re.ASCII)
ABOVE_ZERO = re.compile(r"(?!0+(\.0+)?$)\d{1,4}(\.\d{1,4})?", re.ASCII)


def _matching(form: str, matches: Callable[[str], object], read: Callable[[str], Any] = str) -> SettingForm:
    def read_matching(text: str) -> Any:
        if not matches(text):
            raise ValueError
        return read(text)

    return SettingForm(form, read_matching)


def _networks(example: str) -> SettingForm:
    return SettingForm(
        f"address ranges, like {example}",
        lambda text: tuple(ip_network(part.strip()) for part in text.split(",") if part.strip()),
    )


YES_OR_NO = SettingForm("yes or no", {"yes": True, "no": False}.__getitem__)
PLACE = SettingForm("public, none, or an address like 127.0.0.1:9090", _place)
BY_PLAN = _matching(
    "a whole number, with others for some plans if you like: 1000, or 1000,solo=20,scale=5000",
    NUMBERS.fullmatch,
    lambda text: tuple(part.strip() for part in text.split(",")),
)
MAIL = SettingForm(
    "smtp://[user:password@]host[:port] with STARTTLS, smtps:// with TLS from the start, or smtp://host?tls=none",
    _mail_url,
)
MAILBOX = _matching("an address like invoices@agency.example", MAILBOX_FORM.fullmatch)
ADDRESS = SettingForm("an address like https://agency.example", read_base_url)
DATABASE = SettingForm("sqlite:///path/to/file.db or postgresql://user:password@host/name", database_address)
VALKEY = SettingForm("valkey://[user:password@]host[:port][/number], or valkeys:// for TLS", _valkey_url)
CONTACT = _matching("a name or an address of at most 191 characters, like support@agency.example", LINE.fullmatch)
HOURS = _matching("a number of hours, like 24 or 0.5", ABOVE_ZERO.fullmatch, Decimal)


def _setting(default: Any, description: str, form: SettingForm, *, secret: bool = False) -> Any:
    return field(default=default, metadata={"sentence": description, "form": form, "secret": secret})


@dataclass(frozen=True)
class Settings:
    """The settings; the environment variable of each is `RETAINER_` and its name in capitals."""

    data_dir: Path = _setting(
        Path("data"),
        "The folder of the embedded database.",
        SettingForm("a folder, like /var/lib/retainer", lambda text: Path(text).expanduser()),
    )
    database_url: str = _setting("", "The database; by default a file in the data folder.", DATABASE)
    valkey_url: str = _setting(
        "",
        "The Valkey in which all servers count requests; by default each process counts its own.",
        VALKEY,
        secret=True,
    )
    base_url: str = _setting("", "The public address, for links; by default the host of the request.", ADDRESS)
    contact: str = _setting("", "Whom people ask for another plan or a password link; pages name it.", CONTACT)
    trusted_proxies: tuple[Network, ...] = _setting(
        (), "Proxies whose X-Forwarded-For, -Proto and -Host are trusted.", _networks("127.0.0.1/32,10.0.0.0/8")
    )
    threads: int = _setting(
        16,
        "Number of requests that run at the same time. SQLite runs two, and more only beside slow requests.",
        _whole(1, 256),
    )
    health: str = _setting(
        PUBLIC, "Where /livez and /readyz are served: on the port of the API, nowhere, or at another address.", PLACE
    )
    metrics: str = _setting(
        NOWHERE, "Where /metrics is served to Prometheus: at an address, on the port of the API, or nowhere.", PLACE
    )
    stop_delay: int = _setting(
        0, "Seconds after SIGTERM in which requests are still served while /readyz returns 503.", _whole(0, 300)
    )
    monitor: bool = _setting(True, "Whether `serve` checks sites.", YES_OR_NO)  # noqa: FBT003
    monitor_allow: tuple[Network, ...] = _setting(
        (), "Private networks that the site monitor and webhooks may connect to.", _networks("10.20.0.0/16")
    )
    max_sites: tuple[str, ...] = _setting(("1000",), "Maximum number of sites of an account.", BY_PLAN)
    max_webhooks: tuple[str, ...] = _setting(("20",), "Maximum number of webhooks of an account.", BY_PLAN)
    max_logo_kb: tuple[str, ...] = _setting(
        ("20000",), "Maximum size in KB of all logos that an account's documents print.", BY_PLAN
    )
    max_file_mb: tuple[str, ...] = _setting(("2000",), "Maximum size in MB of all files of an account.", BY_PLAN)
    max_messages: tuple[str, ...] = _setting(
        ("1000",), "Maximum number of messages that an account sends by mail in a day, in UTC.", BY_PLAN
    )
    webhooks: bool = _setting(True, "Whether `serve` sends webhooks.", YES_OR_NO)  # noqa: FBT003
    smtp_url: str = _setting(
        "", "The mail server that sends invoices and other mail; without one, no mail is sent.", MAIL, secret=True
    )
    mail_from: str = _setting(
        "",
        "The address that mail comes from; by default the user of RETAINER_SMTP_URL, if that is an address.",
        MAILBOX,
    )
    backup_dir: Path | None = _setting(
        None,
        "The folder for scheduled backups of the embedded database; by default there are none.",
        SettingForm(
            "a folder for backups only, like /mnt/backup/retainer",
            lambda text: Path(text).expanduser() if text else None,
        ),
    )
    backup_every: Decimal = _setting(Decimal(24), "Hours between scheduled backups.", HOURS)
    backup_keep: int = _setting(14, "Number of scheduled backups to keep.", _whole(1, 9999))
    request_log_days: int = _setting(30, "Retention of the request log in days; 0 turns it off.", _whole(0, 3650))
    event_days: int = _setting(
        30,
        "Retention of events in days: a consumer that stops for longer has to read all records again.",
        _whole(1, 3650),
    )
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def api_url(self) -> str:
        return self.base_url and f"{self.base_url}{BASE_PATH}"

    @property
    def sender(self) -> str:
        """The address that mail comes from; empty if no mail is sent. Raises SettingsError for a server without one."""
        user = unquote(urlsplit(self.smtp_url).username or "")
        if not self.smtp_url or self.mail_from:
            return self.smtp_url and self.mail_from
        if not MAILBOX_FORM.fullmatch(user):
            raise SettingsError("RETAINER_SMTP_URL needs RETAINER_MAIL_FROM: the address that mail comes from.")
        return user

    @property
    def database(self) -> str:
        return self.database_url or f"{SQLITE}{self.data_dir / 'retainer.db'}"

    @property
    def database_path(self) -> Path | None:
        return Path(self.database.removeprefix(SQLITE)) if self.database.startswith(SQLITE) else None


def declared() -> list[tuple[str, Any]]:
    return [(PREFIX + item.name.upper(), item) for item in fields(Settings) if item.default is not MISSING]


def in_force(settings: Settings) -> list[dict[str, str]]:
    """Return all settings with their values, sources and descriptions, without secrets."""
    return [
        {
            "name": name,
            "value": setting_text(getattr(settings, item.name)),
            "source": settings.sources.get(item.name, "default"),
            "description": item.metadata["sentence"],
            "form": item.metadata["form"].text,
        }
        for name, item in declared()
    ]


def setting_text(value: object) -> str:
    """Return a value as in its environment variable, without passwords; `none` if it is not set."""
    if value in {None, "", ()}:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _masked(",".join(map(str, value)) if isinstance(value, tuple) else str(value))


def load(environment: Mapping[str, str] | None = None, dotenv: Path = Path(".env")) -> Settings:
    """Read the settings; the environment takes precedence over the `.env` file.

    Raises SettingsError for unknown `RETAINER_*` variables and invalid values.
    """
    environment = os.environ if environment is None else environment
    variables = {name: (value or "", ".env") for name, value in dotenv_values(dotenv).items()}
    variables |= {name: (value, "environment") for name, value in environment.items()}
    variables = {name: variable for name, variable in variables.items() if name.startswith(PREFIX)}
    settings = dict(declared())
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, (text, source) in variables.items():
        setting = settings.get(name) or settings.get(name.removesuffix("_FILE"))
        is_link = name.endswith("_PORT") and LINK.match(text)
        if setting is None and source == "environment" and (is_link or OF_ORCHESTRATORS.fullmatch(name)):
            continue
        if setting is None:
            known = [each.removeprefix(PREFIX) for each in settings]  # which all names share, so that it says nothing
            near = difflib.get_close_matches(name.removeprefix(PREFIX), known, n=1)
            hint = f" Did you mean {PREFIX}{near[0]}?" if near else f" Settings: {', '.join(settings)}."
            raise SettingsError(f"{name} (from {source}) is not a setting.{hint}")
        value, form = text if name in settings else _secret(name, text), setting.metadata["form"]
        try:
            values[setting.name] = form.read(value)
        except (ValueError, KeyError):
            masked = "***" if setting.metadata["secret"] else repr(_masked(value))
            raise SettingsError(f"{name} (from {source}) is {masked}. It must be {form.text}.") from None
        sources[setting.name] = source if name in settings else f"{source}, file {text}"
    return Settings(**values, sources=sources)


def _masked(text: str) -> str:
    """Return a text with the passwords of URLs replaced by asterisks."""
    return PASSWORDS.sub(lambda found: f"{found[1]}:***@" if found[2] is None else f"{found[2]}***", text)


def _secret(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError(f"{name} names {path!r}, which cannot be read: {error.strerror}.") from None
