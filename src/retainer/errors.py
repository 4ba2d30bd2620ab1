"""The closed catalogue of errors: every error response of the API has one of these codes."""

import difflib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple, Self

CODES: dict[int, tuple[str, ...]] = {
    400: ("malformed_json", "bad_request"),
    401: ("missing_key", "invalid_key", "revoked_key", "expired_key", "user_deactivated"),
    402: ("plan_required", "trial_ended"),
    403: ("account_suspended", "api_disabled", "missing_scope"),
    404: ("not_found",),
    405: ("method_not_allowed",),
    406: ("not_acceptable",),
    409: ("idempotency_in_progress",),
    410: ("events_gone",),
    412: ("precondition_failed",),
    413: ("body_too_large",),
    415: ("unsupported_media_type",),
    422: (
        *("validation_failed", "unknown_parameter", "invalid_transition", "in_use", "locked", "already_billed"),
        *("nothing_to_bill", "idempotency_key_reused", "not_owner", "mail_not_configured"),
    ),
    429: ("rate_limited",),
    500: ("server_error",),
    501: ("unsupported_transfer_coding",),
    503: ("unavailable",),
}
STATUS = {code: status for status, codes in CODES.items() for code in codes}
OF_THE_SERVER = frozenset({500, 503})
"""The statuses of errors that a client has not caused."""

KEEPING = frozenset({"locked", "invalid_transition"})
"""The codes of errors after which a field has its former value, on which rules may rely."""
MAX_OF_A_KIND = 20
"""Errors of one kind that a response lists: a body can have thousands."""
MAX_SUGGESTIONS = 5
MAX_NAME_LENGTH = 100
NEAR = 0.61
"""How near a suggested name is at least: vat_no is nearer than that to vat_number, and client less near to city."""
POSITION = re.compile(r"\.[0-9]+(?=\.|$)")
UNKNOWN = "unknown"
TERM, NAME, FOR_CALLERS, END = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3"
"""What begins each kind of part of a sentence, and what ends it. Unicode keeps these four from being characters."""
MARKS = re.compile(f"([{TERM}{NAME}{FOR_CALLERS}])([^{TERM}-{END}]*){END}?")  # a text that was cut may lack the end
ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("limit", "page_size", "pagesize", "size", "count"), ("per_page",)),
    **dict.fromkeys(("starting_after", "page_token", "next"), ("cursor", "after")),
    **dict.fromkeys(("order", "order_by", "sort_by", "orderby"), ("sort",)),
    **dict.fromkeys(("search", "query"), ("q",)),
    **dict.fromkeys(("expand", "embed", "with"), ("include",)),
    **dict.fromkeys(("updated_after", "updated_from", "modified_since", "since"), ("updated_since",)),
    **dict.fromkeys(("updated_to", "updated_until"), ("updated_before",)),
    **dict.fromkeys(("created_after", "created_from"), ("created_since",)),
    **dict.fromkeys(("created_to", "created_until"), ("created_before",)),
    "offset": ("page",),
    "name": ("title", "subject"),
    "title": ("name", "subject"),
    "subject": ("title", "name"),
}
"""Names that other APIs give to our parameters and fields; letters alone would suggest none, or the opposite."""


def nearest(name: str, known: Collection[str]) -> list[str]:
    """Return the name that an unknown one probably means; empty if none is near."""
    meant = [each for each in ELSEWHERE.get(name, ()) if each in known]
    return meant[:1] or difflib.get_close_matches(name[:MAX_NAME_LENGTH], known, n=1, cutoff=NEAR)


def about_pattern(word: str, known: Iterable[str]) -> str:
    """Return what to send in place of a pattern like `invoice.*`; empty if the word is none."""
    start, star, _ = word.partition("*")
    meant = ", ".join(each for each in known if start and each.startswith(start))
    return f"patterns are not taken.{f' Name each: {meant}.' if meant else ''}" if star else ""


def shown(name: str) -> str:
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}..."


def none_of(sent: Collection[str], known: Collection[str]) -> str:
    """Return a sentence about each of the first names that are none of the known ones."""
    unknown = [name for name in dict.fromkeys(sent) if name not in known]
    told = []
    for name in unknown[:MAX_SUGGESTIONS]:
        advice = about_pattern(name, known) or "".join(f"did you mean {near}?" for near in nearest(name, known))
        told.append(f"{shown(name) or 'An empty name'} is none of them{f': {advice}' if advice else '.'}")
    others = len(unknown) - len(told)
    return " ".join([*told, *([f"{others} more {'is' if others == 1 else 'are'} none of them."] if others else [])])


def part(text: object) -> str:
    """Mark a field, a day, an amount, a record with its id or a term of the API in a sentence."""
    return f"{TERM}{text}{END}"


def titled(name: str) -> str:
    """Mark a name that people have given."""
    return f"{NAME}{name}{END}"


def for_callers(text: str) -> str:
    """Mark what a sentence says to callers alone, such as the operation that does what it advises."""
    return f"{FOR_CALLERS}{text}{END}"


FALSE, NULL, LEAVE_OUT, SEND = map(part, ("false", "null", "Leave it out", "Send"))


class Sentence(str):
    """A sentence for callers of the API, whose parts are marked, so that a page can put them in the words of people.

    Callers do not see the marks of `part`, `titled` and `for_callers`.
    """

    __slots__ = ("marked",)
    marked: str

    def __new__(cls, text: str) -> Self:
        made = super().__new__(cls, MARKS.sub(r"\2", text))
        made.marked = marked(text)
        return made


def marked(text: str) -> str:
    """Return a text with the marks of its parts, if it has some."""
    return text.marked if isinstance(text, Sentence) else text


class FieldErrors(dict[str, list[str]]):
    """Messages by field; nested fields are dotted: `lines.0.quantity`.

    The errors of a field are of one kind, wherever in a list it is; those of unknown names are another kind. Of each
    kind, the first MAX_OF_A_KIND are kept.
    """

    left_out = 0
    """Number of the errors that were not kept."""
    meant: frozenset[str] = frozenset()
    """The fields that unknown names probably mean; rules must not treat them as missing."""
    _counts: Counter[str] | None = None
    _listed: frozenset[str] = frozenset()

    def note(self, field: str, message: str, kind: str = "") -> None:
        """Note an error of a field; `kind` is what it counts as, if not its field."""
        if self._counts is None:
            self._counts = Counter()
        kind = kind or POSITION.sub("", field)
        self._counts[kind] += 1
        if self._counts[kind] > MAX_OF_A_KIND:
            self.left_out += 1
        else:
            self.setdefault(field, []).append(Sentence(message))

    def note_unknown(self, name: str, known: Collection[str], path: str = "", *, is_parameter: bool = False) -> None:
        """Note an unknown field or parameter.

        The first few errors suggest the valid name that is nearest. All valid names are listed once, with the first
        parameter or the first field without a suggestion.
        """
        count = 0 if self._counts is None else self._counts[UNKNOWN]
        near = nearest(name, known) if count < MAX_SUGGESTIONS else []
        self.meant |= {path + valid for valid in near}
        message = f"Unknown {part('parameter') if is_parameter else 'field'}."
        message += f" Did you mean {part(near[0])}?" if near else ""
        if count < MAX_OF_A_KIND and (is_parameter or not near):
            message += self._listing(known)
        self.note(path + shown(name), message, UNKNOWN)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note the errors of fields that the block raises, and go on after it. Raises other refusals."""
        try:
            yield
        except Refusal as refusal:
            if "errors" not in refusal.members:
                raise
            for field, messages in refusal.members["errors"].items():
                for message in messages:
                    if message not in self.get(field, ()):
                        self.note(field, message)

    def raise_errors(self) -> None:
        """Raise `validation_failed` with all errors, if there are any."""
        if self:
            raise invalid(self)

    def _listing(self, known: Collection[str]) -> str:
        sentence = for_callers(f" Valid are: {', '.join(known) or 'none'}.")
        if sentence in self._listed:
            return ""
        self._listed |= {sentence}
        return sentence


class Refusal(Exception):
    """An error response: its code, and a message that says what to do.

    `members` are more fields of its body, `headers` are sent in addition to the common ones.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        errors: Mapping[str, list[str]] | None = None,
        headers: dict[str, str] | None = None,
        **members: Any,
    ) -> None:
        self.message = Sentence(message)
        super().__init__(self.message)
        self.code = code
        self.status = STATUS[code]
        self.headers = headers or {}
        for messages in (errors or {}).values():
            messages[:] = map(Sentence, messages)
        self.members = members if errors is None else {"errors": errors, **members}


class InvalidValue(ValueError):
    """A refused value, with its whole message, or with a hint that follows "Must be ...; " in it."""

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        super().__init__(message or hint)
        self.hint = hint


class Unreadable(NamedTuple):
    """What stands in a body for a text that a form could not read: its error is reported with those of rules."""

    message: str


def as_text(value: object) -> object:
    """Return a sentence as the text that callers read, for encoders. Raises TypeError for other values."""
    if isinstance(value, Sentence):
        return str(value)
    raise TypeError(f"{type(value)} cannot be encoded.")


def invalid(errors: Mapping[str, list[str]], code: str = "validation_failed") -> Refusal:
    """Return a refusal with all errors; its message has the first one and the number of the others."""
    messages = [f"{field}: {marked(message)}" for field, texts in errors.items() for message in texts]
    noted = errors if isinstance(errors, FieldErrors) else FieldErrors()
    left_out = noted.left_out
    others = len(messages) - 1 + left_out
    unlisted = f", of which {left_out} are not listed" if left_out else ""
    more = f" (and {others} more {'error' if others == 1 else 'errors'}{unlisted})" if others else ""
    return Refusal(code, f"Correct the request and send it again. {messages[0]}{more}", errors=errors)


class NoSuchRecord(Refusal):
    """A 404 of a record; the same if it never existed, was deleted, or belongs to another account.

    Operators read the id that they typed instead.
    """

    def __init__(self, noun: str, typed_id: int | None = None) -> None:
        message = f"There is no such {noun} in this account. Check the id in the path."
        super().__init__("not_found", message if typed_id is None else f"There is no {noun} {typed_id}.")
        self.noun, self.typed_id = noun, typed_id


def not_found(noun: str) -> NoSuchRecord:
    return NoSuchRecord(noun)


def method_not_allowed(method: str, allow: str, advice: str = "") -> Refusal:
    """Return a 405 with the methods of the path, in the message and in `Allow` (RFC 9110, 15.5.6)."""
    message = f"This path does not support {method}. Supported: {allow}. {advice}".rstrip()
    return Refusal("method_not_allowed", message, headers={"Allow": allow})


class BodyErrors:
    """The errors of a body. Rules note them, and all are raised together before anything is written."""

    prefix = ""
    """That of nested fields, like `lines.0.`."""
    unreadable: frozenset[str] = frozenset()
    sent: frozenset[str] = frozenset()
    """The fields that the body sets, also those that it sets to null."""

    @cached_property
    def errors(self) -> FieldErrors:
        return FieldErrors()

    @cached_property
    def codes(self) -> set[str]:
        return set()

    @cached_property
    def refused(self) -> set[str]:
        """The fields whose values rules have refused, and those that contain them."""
        return set()

    def note_unreadable(self, errors: FieldErrors) -> None:
        """Note the fields that could not be read. Errors of rules for them, or for misspelt ones, are dropped.

        Raises the errors if there are too many to note: rules would add consequences of those that were left out.
        """
        if errors:
            self.errors |= errors
            self.errors.left_out += errors.left_out
            self.codes.add("validation_failed")
            self.unreadable = frozenset((*errors, *errors.meant))
        if errors.left_out:
            self.raise_errors()

    def readable(self, *fields: str) -> bool:
        """Return whether these fields could be read, and were not refused so far: a rule may rely on their values.

        Otherwise, its error would report a consequence in addition to its cause.
        """
        if not self.unreadable and not self.refused:
            return True
        names = [self.prefix + field for field in fields]
        nested = tuple(f"{name}." for name in names)
        if not self.refused.isdisjoint(names) or any(map(self._is_unreadable, names)):
            return False
        return not any(name.startswith(nested) for name in self.unreadable)

    def _is_unreadable(self, name: str) -> bool:
        """Return whether a field, or a field that contains it, could not be read."""
        while name and name not in self.unreadable:
            name = name.rpartition(".")[0]
        return bool(name)

    def error(self, field: str, message: str, code: str = "validation_failed") -> None:
        name = self.prefix + field
        if self._is_unreadable(name):
            return
        message = Sentence(message)
        if message not in self.errors.get(name, ()):  # a rule may check a line before its row is validated
            self.errors.note(name, message)
        self.codes.add(code)
        while code not in KEEPING and name and name not in self.refused:
            self.refused.add(name)
            name = name.rpartition(".")[0]

    def raise_errors(self) -> None:
        """Raise the errors, if any: with their code, or as `validation_failed` if they have several codes."""
        if self.errors:
            raise invalid(self.errors, self.codes.pop() if len(self.codes) == 1 else "validation_failed")
