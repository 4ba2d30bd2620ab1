"""Responses to browsers: documents with an ETag, and the Content-Security-Policy of pages."""

from retainer.errors import method_not_allowed
from retainer.kernel import etag
from retainer.kernel.http import Request, Response

READ = "GET, HEAD, OPTIONS"
HTML = "text/html; charset=utf-8"
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}
"""The Content-Security-Policy of every page; `protection` takes exceptions."""


def document(request: Request, content_type: str, body: bytes, *headers: tuple[str, str]) -> Response:
    """Return a read-only document, a 304 if the client has it, or a 204 to OPTIONS. Raises `method_not_allowed`."""
    if request.method == "OPTIONS":
        return Response(204, [("allow", READ)])
    if request.method not in {"GET", "HEAD"}:
        raise method_not_allowed(request.method, READ)
    tag = etag.compute(body)
    if etag.matches(request.header("IF_NONE_MATCH"), tag):
        return Response(304, [("etag", tag), *headers])
    return Response(200, [("content-type", content_type), ("etag", tag), *headers], body)


def protection(**more: str) -> list[tuple[str, str]]:
    """Return the security headers of a page; `more` are exceptions to the policy, like `connect_src`."""
    policy = POLICY | {name.replace("_", "-"): value for name, value in more.items()}
    return [
        ("content-security-policy", "; ".join(f"{name} {value}" for name, value in policy.items())),
        ("cross-origin-opener-policy", "same-origin"),
        ("referrer-policy", "same-origin"),
    ]
