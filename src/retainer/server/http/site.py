"""Requests outside the base path: pages by the first part of their path, and 404 for all others."""

from collections.abc import Callable, Mapping

from retainer.errors import Refusal
from retainer.kernel import pipeline
from retainer.kernel.http import Request, Response
from retainer.kernel.limits import Limiter, hit_address
from retainer.kernel.pipeline import RequestLog
from retainer.settings import BASE_PATH

STAY_SECURE = ("strict-transport-security", "max-age=31536000")
"""Browsers that have reached the server by https do so for a year, whatever a link says."""
Page = Callable[[Request], Response]
"""Answers a request, or raises a Refusal."""


class Site:
    """What a server answers outside the base path: `pages` by the first part of their path, like `openapi.json`."""

    def __init__(self, pages: Mapping[str, Page], limiter: Limiter, log: RequestLog) -> None:
        self.pages, self.limiter, self.log = pages, limiter, log

    def answer(self, request: Request) -> Response:
        """Answer with the headers of the API and the rate limit of the address, to which refusals are charged."""
        try:
            request.check()
            page = self.pages.get(request.path[1:].partition("/")[0], no_page)
            response = page(request)
            allowance = hit_address(self.limiter, request.address, charge=False)  # pages charge refusals of their own
        except Exception as error:  # noqa: BLE001  # any error is answered as a refusal
            refusal = pipeline.to_refusal(error, request, self.log)
            allowance, refusal = pipeline.limit_anonymous(request, refusal, self.limiter)
            response = pipeline.refuse(refusal, request)
        said = {name for name, _ in response.headers}
        fixed = (
            [*pipeline.COMMON_HEADERS, STAY_SECURE] if request.origin.startswith("https:") else pipeline.COMMON_HEADERS
        )
        pipeline.add_headers(response, request, allowance, [pair for pair in fixed if pair[0] not in said])
        self.log.request(request, response, None, None)
        return response


def no_page(_: Request) -> Response:
    """Raise `not_found`, which says what there is."""
    raise Refusal("not_found", f"There is nothing here. The API is at {BASE_PATH}, its reference at /docs.")
