"""Requests outside the base path: pages, by the first part of their path."""

from collections.abc import Callable, Mapping

from retainer.errors import Refusal
from retainer.kernel import pipeline
from retainer.kernel.http import Request, Response
from retainer.kernel.limits import Limiter, hit_address
from retainer.kernel.pipeline import RequestLog
from retainer.settings import BASE_PATH

STAY_SECURE = ("strict-transport-security", "max-age=31536000")
"""After a visit over https, browsers use only https for a year."""
Page = Callable[[Request], Response]
"""Returns the response to a request, or raises a Refusal."""


class Site:
    """The `pages` outside the base path, by the first part of their path, like `openapi.json`."""

    def __init__(self, pages: Mapping[str, Page], limiter: Limiter, log: RequestLog) -> None:
        self.pages, self.limiter, self.log = pages, limiter, log

    def answer(self, request: Request) -> Response:
        """Return the response, with the API's headers and the rate limit of the address; refusals count against it."""
        try:
            request.check()
            page = self.pages.get(request.path[1:].partition("/")[0], no_page)
            response = page(request)
            allowance = hit_address(self.limiter, request.address, charge=False)  # pages charge their own refusals
        except Exception as error:  # noqa: BLE001  # every error becomes a response of the catalogue
            refusal = pipeline.to_refusal(error, request, self.log)
            allowance, refusal = pipeline.limit_anonymous(request, refusal, self.limiter)
            response = pipeline.refuse(refusal, request)
        present = {name for name, _ in response.headers}
        common = (
            [*pipeline.COMMON_HEADERS, STAY_SECURE] if request.origin.startswith("https:") else pipeline.COMMON_HEADERS
        )
        pipeline.add_headers(response, request, allowance, [pair for pair in common if pair[0] not in present])
        self.log.request(request, response, None, None, None)
        return response


def no_page(_: Request) -> Response:
    """Raise `not_found`."""
    raise Refusal("not_found", f"There is nothing here. The API is at {BASE_PATH}, its reference at /docs.")
