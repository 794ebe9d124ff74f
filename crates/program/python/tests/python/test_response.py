"""The response of an error has the attributes of a response of the library requests, with the same values."""

import importlib.util
import inspect
import pickle
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import longshore

HAS_REQUESTS = importlib.util.find_spec("requests") is not None

#: What a response of requests has and ours does not: parts of its connection.
OTHERS = {"cookies", "elapsed", "links", "raw", "request"}

STATUS = (
    b'{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no such thing \xc3\xa4", '
    b'"reason": "NotFound", "details": {"name": "a"}, "code": 404}'
)

#: The responses of the server by path: status code, headers, body.
RESPONSES: dict[str, tuple[int, dict[str, str], bytes]] = {
    "/api/v1/status": (404, {"Content-Type": "application/json", "X-Request-Id": "a-1"}, STATUS),
    "/api/v1/page": (502, {"Content-Type": "text/html; charset=utf-8"}, b"<html>\n<p>proxy</p>\n</html>"),
    "/api/v1/busy": (403, {"Content-Type": "application/json", "Retry-After": "7"}, STATUS.replace(b"404", b"403")),
    "/api/v1/empty": (400, {}, b""),
    "/api/v1/moved": (301, {"Location": "https://login.example/", "Content-Type": "text/plain; charset=utf-8"}, b"moved"),
    "/api/v1/other": (422, {"Content-Type": "application/json"}, b'{"message": "other", "list": [1, 2]}'),
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        code, headers, body = RESPONSES[self.path.partition("?")[0]]
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_arguments: Any) -> None:
        """Prints nothing."""


class Responses(unittest.TestCase):
    def setUp(self) -> None:
        server = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_port}"
        self.cluster = longshore.Cluster(self.url)
        self.addCleanup(self.cluster.close)

    def error(self, path: str) -> longshore.APIError:
        with self.assertRaises(longshore.APIError) as raised:
            self.cluster.proxy().request("GET", [path], [("limit", "1")])
        return raised.exception

    @unittest.skipUnless(HAS_REQUESTS, "requests is not installed")
    def test_the_values_are_those_of_requests(self) -> None:
        import requests

        for path, (code, _, body) in RESPONSES.items():
            response: Any = self.error(path).response
            expected: Any = requests.get(self.url + path, allow_redirects=False, timeout=10)
            for name in ["content", "is_permanent_redirect", "is_redirect", "ok", "reason", "status_code", "text", "url"]:
                with self.subTest(f"{path} {name}"):
                    self.assertEqual(getattr(response, name), getattr(expected, name))
            for name, value in expected.headers.items():
                if name == "Date":
                    continue
                self.assertEqual((response.headers[name], response.headers.get(name.upper())), (value, value))
            self.assertEqual((response.headers.get("no-such"), "no-such" in response.headers), (None, False))
            self.assertEqual(list(response.iter_lines()), list(expected.iter_lines()))
            self.assertEqual(b"".join(response.iter_content(3)), body)
            self.assertEqual(bool(response), bool(expected))
            self.assertEqual(repr(response), repr(expected))
            if b'"' in body:
                self.assertEqual(response.json(), expected.json())
            if code >= 400:
                with self.assertRaisesRegex(longshore.APIError, str(code)) as again:
                    response.raise_for_status()
                self.assertIs(again.exception.response, response)
            else:
                response.raise_for_status()

    @unittest.skipUnless(HAS_REQUESTS, "requests is not installed")
    def test_all_attributes_exist(self) -> None:
        import requests

        names = {name for name in [*dir(requests.Response), *vars(requests.Response())] if not name.startswith("_")}
        response = self.error("/api/v1/status").response
        self.assertEqual({name for name in names if not hasattr(response, name)}, OTHERS)
        for name in names - OTHERS:
            is_method = inspect.isfunction(getattr(requests.Response, name, None))
            self.assertEqual(inspect.ismethod(getattr(response, name)), is_method, name)

    def test_fields_of_the_status(self) -> None:
        error = self.error("/api/v1/status")
        self.assertEqual((error.server_message, error.reason, error.details, error.status_code), ("no such thing ä", "NotFound", {"name": "a"}, 404))
        self.assertEqual(error.response.json()["code"], 404)
        # Of a body that is not JSON, the status describes it.
        self.assertEqual((self.error("/api/v1/page").response.json()["code"], self.error("/api/v1/empty").response.json()["code"]), (502, 400))
        self.assertIn("proxy", str(self.error("/api/v1/page")))
        self.assertEqual(self.error("/api/v1/busy").retry_after, 7)

    def test_errors_can_be_pickled(self) -> None:
        for path in RESPONSES:
            error = self.error(path)
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((str(again), again.response.text, again.response.headers["content-length"]),
                             (str(error), error.response.text, error.response.headers["Content-Length"]))


if __name__ == "__main__":
    unittest.main()
