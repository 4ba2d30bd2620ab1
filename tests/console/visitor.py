"""A visitor of the console: a browser without a screen, which keeps cookies and sends forms."""

import io
import re
from functools import lru_cache
from html import unescape
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from typing import Any, NamedTuple, cast
from urllib.parse import urlencode, urlsplit
from wsgiref.validate import validator

from testing.wsgi import wsgi

from retainer.app import App
from retainer.identity.people import users
from tests.contract_checker import MARKS
from tests.factories import ApiClient
from tests.quick_hashes import QUICK

PASSWORD = "seven quiet lanterns"
HASH = QUICK.hash(PASSWORD)


class Element:
    """An element of a page: its attributes, and the texts and elements in it."""

    def __init__(self, tag: str, attributes: dict[str, str | None]) -> None:
        self.tag, self.attributes, self.parts = tag, attributes, list[Any]()

    def __getitem__(self, attribute: str) -> str:
        return self.attributes.get(attribute) or ""

    @property
    def texts(self) -> list[str]:
        """The texts between tags, without those of spaces alone."""
        parts = [part.texts if isinstance(part, Element) else [part.strip()] for part in self.parts]
        return [text for texts in parts for text in texts if text]

    @property
    def text(self) -> str:
        """What a person reads."""
        return " ".join(" ".join(self.texts).split())

    def all(self, tags: str, kind: str = "", **attributes: str) -> "list[Element]":
        """Return the elements of some tags, in order: those of a class, and with some attributes."""
        found = []
        for part in self.parts:
            if isinstance(part, Element):
                is_kind = not kind or kind in part["class"].split()
                if part.tag in tags.split() and is_kind and attributes.items() <= part.attributes.items():
                    found.append(part)
                found += part.all(tags, kind, **attributes)
        return found

    def __contains__(self, attribute: str) -> bool:
        return attribute in self.attributes


class Tree(HTMLParser):
    """Builds the elements of a page."""

    EMPTY = frozenset(
        ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"]
    )

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open = [Element("", {})]
        self.feed(html)
        self.root = self.open[0]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.open[-1].parts.append(element)
        if tag not in self.EMPTY:
            self.open.append(element)

    def handle_data(self, data: str) -> None:
        self.open[-1].parts.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in [element.tag for element in self.open]:
            while self.open.pop().tag != tag:
                pass


@lru_cache(8)
def elements_of(html: str) -> Element:
    return Tree(html).root


class WebPage(NamedTuple):
    """What was answered."""

    status: int
    headers: dict[str, str]
    html: str
    content: bytes = b""

    def all(self, tags: str, kind: str = "", **attributes: str) -> list[Element]:
        """Return elements of the page; see `Element.all`."""
        return elements_of(self.html.replace("<wbr>", "")).all(tags, kind, **attributes)

    @property
    def text(self) -> str:
        """What a person reads in the main part; each page is read so, and a parser would take ten times as long."""
        main = self.html.replace("<wbr>", "").partition("<main")[2].partition(">")[2].partition("</main>")[0]
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", main)).split())

    @property
    def title(self) -> str:
        return unescape(self.html.partition("<title>")[2].partition("</title>")[0])

    @property
    def location(self) -> str:
        return self.headers["location"]

    @property
    def links(self) -> list[str]:
        """The links to pages of the console, without those to a place on a page."""
        return [unescape(link) for link in re.findall(r'href="(/console[^"#]*)"', self.html)]

    def error_of(self, field: str) -> str:
        """Return the error beside a field."""
        return " ".join(error.text for error in self.all("p", id=f"{field}-error"))


class Fields(HTMLParser):
    """The fields of a page's forms as a browser would send them: by the action of the form."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: dict[str, list[tuple[str, str]]] = {}
        self.form = self.select = self.textarea = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self.form = given.get("action") or ""
            self.forms.setdefault(self.form, [])
        name, value = given.get("name") or "", given.get("value") or ""
        ticked = given.get("type") not in {"checkbox", "radio"} or "checked" in given
        if tag == "input" and name and ticked:
            self.forms[self.form].append((name, value))
        if tag == "select":
            self.select = name
        if tag == "textarea":
            self.textarea = name
            self.forms[self.form].append((name, ""))
        if tag == "option" and "selected" in given:
            self.forms[self.form].append((self.select, value))

    def handle_data(self, data: str) -> None:
        if self.textarea:
            name, text = self.forms[self.form].pop()
            self.forms[self.form].append((name, text + data))

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            name, text = self.forms[self.form].pop()
            self.forms[self.form].append((name, text.removeprefix("\n")))
            self.textarea = ""


class Visitor:
    """Somebody with a browser."""

    def __init__(self, app: App, address: str = "203.0.113.7") -> None:
        self.app, self.address = app, address
        self.cookies: dict[str, str] = {}

    def call(
        self, method: str, path: str, body: bytes | None = None, *, may_fail: bool = False, **headers: Any
    ) -> WebPage:
        """Send a request as a browser does from a page of the console; headers by their WSGI names."""
        parts = urlsplit(path)
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": parts.path,
            "QUERY_STRING": parts.query,
            "SERVER_NAME": "agency.example",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": self.address,
            "HTTP_HOST": "agency.example",
            "HTTP_ACCEPT": "text/html,*/*",
            "HTTP_COOKIE": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
            "HTTP_SEC_FETCH_SITE": "same-origin",
            "HTTP_USER_AGENT": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body or b""),
            "wsgi.errors": io.StringIO(),
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        if body is not None:
            environ |= {"CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": "application/x-www-form-urlencoded"}
        environ = {name: value for name, value in (environ | headers).items() if value is not None}
        seen: list[Any] = []
        answered: Any = validator(wsgi(self.app))(environ, lambda status, sent, _=None: seen.append((status, sent)))
        try:
            content = b"".join(answered)
        finally:
            answered.close()
        status, sent = seen[0]
        for name, value in sent:
            if name == "set-cookie":
                self._keep(value)
        page = WebPage(
            int(status.split()[0]),
            {name.lower(): value for name, value in sent},
            content.decode(errors="replace"),
            content,
        )
        assert not MARKS.search(content), f"{path} has marks of parts: {page.text[:200]}"
        assert page.status < 500 or may_fail, f"{page.status} {page.text}\n{self.logged()}"
        return page

    def get(self, path: str, **headers: Any) -> WebPage:
        return self.call("GET", path, **headers)

    def post(self, path: str, form: Any = (), **headers: Any) -> WebPage:
        return self.call("POST", path, urlencode(form, doseq=True).encode(), **headers)

    def upload(self, path: str, content: bytes, name: str = "logo", file_name: str = "a.png", **fields: str) -> WebPage:
        """Send a form with a file."""
        boundary = b"----boundary"
        parts = [(f'name="{field}"', text.encode()) for field, text in fields.items()]
        parts.append((f'name="{name}"; filename="{file_name}"\r\nContent-Type: application/octet-stream', content))
        body = b"".join(
            b"--%b\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n" % (boundary, head.encode(), data)
            for head, data in parts
        )
        sent = f"multipart/form-data; boundary={boundary.decode()}"
        return self.call("POST", path, body + b"--%b--\r\n" % boundary, CONTENT_TYPE=sent)

    def submit(self, path: str, *, action: str = "", leave: tuple[str, ...] = (), **fields: Any) -> WebPage:
        """Open a page, fill its form in, and send it as it then is; follow the redirect."""
        action = action or path
        form = [pair for pair in Fields(self.get(path).html).forms[action] if pair[0] not in {*fields, *leave}]
        return self.follow(self.post(action, [*form, *fields.items()]))

    def follow(self, page: WebPage) -> WebPage:
        return self.get(page.location) if page.status == 303 else page

    def sign_in(self, email: str, password: str = PASSWORD, **fields: str) -> WebPage:
        return self.post("/console/sign-in", {"email": email, "password": password, **fields})

    def logged(self) -> str:
        """What the server has logged last."""
        self.app.log.drain()
        return cast(io.BytesIO, self.app.log.writer.stream).getvalue()[-4000:].decode()

    def _keep(self, cookie: str) -> None:
        for name, morsel in SimpleCookie(cookie).items():
            if morsel["max-age"] == "0":
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = morsel.coded_value


def admin_of(api: ApiClient, address: str = "203.0.113.7") -> Visitor:
    """The admin of an agency, signed in."""
    return user_of(api, api.admin_id, address)


def user_of(api: ApiClient, user_id: int, address: str = "203.0.113.7") -> Visitor:
    """A user of an agency, signed in."""
    with api.operating() as tx:
        users.set_password(tx, user_id, "Ana Admin", HASH)
        email = users.get_user(tx, user_id)["email"]
    visitor = Visitor(api.app, address)
    assert visitor.sign_in(email).status == 303
    return visitor
