"""Requests outside the base path: pages, by the first part of their path."""

from collections.abc import Callable, Mapping

from retainer.errors import Refusal
from retainer.kernel import pipeline
from retainer.kernel.http import Request, Response
from retainer.kernel.limits import SlidingWindow, hit_address
from retainer.kernel.pipeline import LogRequest, Report
from retainer.settings import BASE_PATH

STAY_SECURE = ("strict-transport-security", "max-age=31536000")
"""After a visit over https, browsers use only https for a year."""
TREES = frozenset({".well-known", "assets", "client", "console", "docs"})
"""Pages that have others below their paths."""
CHECKED = frozenset({"client", "console"})
"""Pages that check a request themselves, since what people read is a page."""
UNCHARGED = frozenset({"", "assets", "client", "console", "favicon.ico", "robots.txt"})
"""Pages that do not count against the limit of an address. The console and client pages count themselves."""
Page = Callable[[Request], Response]
"""Returns the response to a request, or raises a Refusal."""


class PublicSite:
    """The `pages` outside the base path, by the first part of their path, like `openapi.json`."""

    def __init__(self, pages: Mapping[str, Page], limiter: SlidingWindow, log: LogRequest, report: Report) -> None:
        self.pages, self.limiter, self.log_request, self.report = pages, limiter, log, report

    def answer(self, request: Request) -> Response:
        """Return the response, with the API's headers and the rate limit of the address.

        Pages and refusals count against it, but not assets: one page needs several, and they cost next to nothing.
        """
        name, slash, _ = request.path[1:].partition("/")
        allowance, page = None, no_page if slash and name not in TREES else self.pages.get(name, no_page)
        try:
            if name not in CHECKED:
                request.check()
            if page is not no_page and name not in UNCHARGED:
                allowance = hit_address(self.limiter, request.address, charge=True)
                allowance.admit()
            response = page(request)
        except Exception as error:  # noqa: BLE001  # every error becomes a response of the catalogue
            refusal = pipeline.to_refusal(error, request, self.report)
            response, allowance, _ = pipeline.answer_refusal(refusal, request, self.limiter, allowance)
        if allowance is None:
            allowance = hit_address(self.limiter, request.address, charge=False)
        present = {name for name, _ in response.headers}
        common = (
            [*pipeline.COMMON_HEADERS, STAY_SECURE] if request.origin.startswith("https:") else pipeline.COMMON_HEADERS
        )
        pipeline.add_headers(response, request, allowance, [pair for pair in common if pair[0] not in present])
        self.log_request(request, response, None, None, None)
        return response


def no_page(_: Request) -> Response:
    raise Refusal("not_found", f"There is nothing here. The API is at {BASE_PATH}, its reference at /docs.")
