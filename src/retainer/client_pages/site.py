"""The requests of client pages: the limit of each address, the link, the page, its files, and the answer to a quote.

They have no session and no script. What a request may see and do follows from the token in its query alone, so that
there is nothing that another site could use; neither search engines nor the sites that a page names learn of it.
"""

from collections.abc import Callable
from urllib.parse import quote as quoted

from retainer.billing import files as documents
from retainer.billing.client_links import PATH
from retainer.client_pages.answering import ClientAnswer, read_answer, save_answer
from retainer.client_pages.shown import ShownDocument, context_of, load_record, load_shown
from retainer.client_pages.visitors import Visitor, find_visitor
from retainer.client_pages.wording import WORDS, language_of
from retainer.errors import Refusal, method_not_allowed, not_found
from retainer.files import files
from retainer.files.contents import BYTES, SHOWN
from retainer.kernel import pipeline
from retainer.kernel.http import Request, Response
from retainer.kernel.limits import SlidingWindow
from retainer.kernel.pipeline import Report
from retainer.kernel.representations import PreparedFile, RunApart
from retainer.kernel.resource import read_id
from retainer.schema import files as schema
from retainer.store import retries
from retainer.store.tx import ActorChanged, Store, Tx
from retainer.web import forms
from retainer.web.forms import Form
from retainer.web.pages import HTML, compile_templates, markup, protection

ADDRESS_LIMIT, LINK_LIMIT = 120, 60
"""Requests of an address, and files that are read with a link, in a minute."""
MAX_BYTES = 64 * 1024
"""Bytes of a form."""
HEADERS = {"cache-control": "no-store", "x-robots-tag": "noindex, nofollow", "referrer-policy": "no-referrer"}
"""robots.txt does not name these pages: search engines would then list an address that they may not read."""


class Unusable(Refusal):
    """A link that shows nothing, or a document that is a draft again; `why` says which, in a language."""

    def __init__(self, heading: str, why: str, language: str) -> None:
        super().__init__("not_found", why)
        self.heading, self.language = heading, language


class ClientPages:
    """The pages below PATH. `note_opening` takes the account and the link of a page that was opened."""

    def __init__(
        self,
        store: Store,
        limiter: SlidingWindow,
        report: Report,
        run_apart: RunApart,
        note_opening: Callable[[int, int, str | None], None],
    ) -> None:
        self.store, self.limiter, self.report, self.run_apart = store, limiter, report, run_apart
        self.note_opening = note_opening
        compile_templates("client_pages")

    def answer(self, request: Request) -> Response:
        """Return a page, a file or a redirect; any error is a page, too."""
        try:
            self.limiter.hit(f"client:{request.address}", ADDRESS_LIMIT).admit()  # before anything is looked up
            request.check()
            try:
                return self._answer(request, self._visitor(request))
            except ActorChanged:  # the link was revoked while the answer waited for its turn
                raise self._unusable(request) from None
        except Exception as error:  # noqa: BLE001  # any error is a page
            return _problem(request, pipeline.to_refusal(error, request, self.report))

    def _visitor(self, request: Request) -> Visitor:
        """Return the visitor with the token of the query. Raises Unusable, the same for all that shows nothing."""
        visitor = find_visitor(self.store, token_of(request), request.shown_address)
        if visitor is None:
            raise self._unusable(request)
        return visitor

    def _unusable(self, request: Request) -> Unusable:
        language = language_of(request.header("ACCEPT_LANGUAGE"))
        words = WORDS[language]
        return Unusable(words["unusable"], words["unusable_why"], language)

    def _answer(self, request: Request, visitor: Visitor) -> Response:
        path = request.path.removeprefix(PATH)
        if path == "" and request.method == "POST":
            return self._act(request, visitor)
        if request.method not in {"GET", "HEAD"}:
            raise method_not_allowed(request.method, "GET, HEAD" if path else "GET, HEAD, POST")
        if path == "":
            self.note_opening(visitor.account_id, visitor.link_id, None)
            return self._page(request, visitor, self._read(visitor), Form())
        self.limiter.hit(f"link:{visitor.link_id}", LINK_LIMIT).admit()
        return self._file(path, visitor)

    def _read(self, visitor: Visitor) -> ShownDocument:
        with self.store.begin(visitor, write=False) as tx:
            tx.snapshot()
            shown = load_shown(tx, visitor)
        if shown.record.status == "draft":
            why = shown.words["draft_why"].format(issuer=shown.pdf.document.issuer.name)
            raise Unusable(shown.words["draft"], why, shown.pdf.document.language)
        return shown

    def _page(self, request: Request, visitor: Visitor, shown: ShownDocument, form: Form) -> Response:
        values = context_of(shown, visitor)
        asks = "total" in form  # to confirm it, which is no error
        status = 422 if form.errors or (form.message and not asks) else 200
        return _respond("document", status, form=form, base=PATH, token=quoted(token_of(request), safe=""), **values)

    def _file(self, path: str, visitor: Visitor) -> Response:
        """Return the PDF or the e-invoice of the document, or one of its files. Raises `not_found`."""
        prepared, media_type = self._prepared(path, visitor, self._read(visitor))
        file = prepared.finish(visitor.account_id, self.run_apart)
        return Response(200, [*file.headers(media_type), *HEADERS.items()], file.content, file.download)

    def _prepared(self, path: str, visitor: Visitor, shown: ShownDocument) -> tuple[PreparedFile, str]:
        if path == "/pdf":
            return shown.pdf, documents.PDF
        with self.store.begin(visitor, write=False) as tx:
            tx.snapshot()
            if path == "/xml":
                return documents.prepare("xml", tx, load_record(tx, visitor)), documents.XML
            file_id = read_id(path.removeprefix("/files/"), schema.files)
            found = next((file for file in shown.files if file.id == file_id), None)
            if found is None:
                raise not_found("file")
            return files.prepare(tx, found), found.media_type if found.media_type in SHOWN else BYTES

    def _act(self, request: Request, visitor: Visitor) -> Response:
        """Record the answer to a quote, and lead to its page, which says what has become of it."""
        if len(request.body) > MAX_BYTES:
            raise Refusal("body_too_large", f"The form is larger than {MAX_BYTES // 1024} KiB.")
        form, shown = forms.parse_body(request), self._read(visitor)
        if shown.is_open_quote:
            answer = read_answer(form, shown)
            if answer is None or not self._save(request, visitor, answer):
                shown = self._read(visitor)
                if shown.is_open_quote:
                    form.message = form.message or ("" if form.errors else shown.words["changed"])
                    return self._page(request, visitor, shown, form)
        page = f"{PATH}?token={quoted(token_of(request), safe='')}"
        return Response(303, [("location", page), ("content-type", HTML), *HEADERS.items()])

    def _save(self, request: Request, visitor: Visitor, answer: ClientAnswer) -> bool:
        def work(tx: Tx) -> bool:
            tx.request_id = request.id
            return save_answer(tx, visitor, answer, request.settings.base_url)

        return retries.write(self.store, visitor, work)


def token_of(request: Request) -> str:
    return forms.parse(request.query).text("token")


def _problem(request: Request, refusal: Refusal) -> Response:
    language = refusal.language if isinstance(refusal, Unusable) else language_of(request.header("ACCEPT_LANGUAGE"))
    words = WORDS["de" if language == "de" else "en"]
    name = {404: "unusable", 429: "many"}.get(refusal.status, "failed")
    heading, why = words[name], words[f"{name}_why"].format(id=request.id)
    if isinstance(refusal, Unusable):
        heading, why = refusal.heading, refusal.message
    response = _respond("problem", refusal.status, language=language, heading=heading, sentence=why)
    response.headers += refusal.headers.items()
    return response


def _respond(template: str, status: int, **context: object) -> Response:
    headers = dict(protection(script_src="'none'")) | HEADERS
    body = markup(f"client_pages/{template}.html", **context).encode()
    return Response(status, [("content-type", HTML), *headers.items()], body)
