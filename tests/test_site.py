import io
import json

import pytest


def outside(api, path):
    """What lies outside the base path answers without a key."""
    seen = []
    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "SERVER_NAME": "agency.example",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "agency.example",
        "wsgi.url_scheme": "https",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": io.StringIO(),
    }
    body = b"".join(api.app(environ, lambda *start: seen.append(start[0])))
    return seen[0], json.loads(body)


def test_the_document_names_the_address_that_it_was_asked_for_under(api):
    status, document = outside(api, "/openapi.json")
    assert status == "200 OK"
    assert document["servers"][0]["url"] == "https://agency.example/api/public/v1"
    assert "/clients/{client_id}" in document["paths"]


@pytest.mark.parametrize("path", ["/", "/nothing", "/api/public/v1x/clients"])
def test_any_other_path_says_where_the_api_is(api, path):
    status, answer = outside(api, path)
    assert status.startswith("404")
    assert "/api/public/v1" in answer["message"]
