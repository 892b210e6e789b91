"""Runs the checks of scim2-tester against a server and prints each result as a line of JSON.

    check.py URL DOMAIN < token

The names of the users that the checks make are addresses in DOMAIN; everything else is as the checks like it.
"""

import http.client
import json
import sys
import uuid
from urllib.parse import urlsplit

from scim2_client.engines.wsgi import WSGISCIMClient
from scim2_tester import check_server
from scim2_tester import filling
from scim2_tester.checkers import patch_add, patch_replace


def forward(environ, start_response):
    """Sends a request on to the server. The client's own way there is a library that nothing else needs."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    path = environ["PATH_INFO"]
    if environ.get("QUERY_STRING"):
        path += "?" + environ["QUERY_STRING"]
    headers = {name[5:].replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
    if environ.get("CONTENT_TYPE"):
        headers["Content-Type"] = environ["CONTENT_TYPE"]
    server = http.client.HTTPConnection(environ["HTTP_HOST"], timeout=60)
    try:
        server.request(environ["REQUEST_METHOD"], path, environ["wsgi.input"].read(length) or None, headers)
        answer = server.getresponse()
        body = answer.read()
    finally:
        server.close()
    start_response(f"{answer.status} {answer.reason}", answer.getheaders())
    return [body]


def main(url, domain, token):
    plain = filling.generate_random_value

    def steered(context, path, *args, **kwargs):
        value = plain(context, path, *args, **kwargs)
        if value is not None and str(path).lower().endswith("username"):
            return f"{uuid.uuid4()}@{domain}"
        return value

    for module in (filling, patch_add, patch_replace):
        module.generate_random_value = steered

    client = WSGISCIMClient(forward, base_url=url, headers={"Authorization": f"Bearer {token}"})
    for result in check_server(client):
        print(json.dumps({
            "status": result.status.name,
            "title": result.title,
            "resource": result.resource_type,
            "reason": result.reason,
            "data": None if result.status.name == "SUCCESS" else str(result.data)[:2000],
        }))


main(sys.argv[1], sys.argv[2], sys.stdin.read().strip())
