"""Views in notebooks are tables in which all text of the objects is escaped."""

import html.parser
import http.server
import json
import threading
import unittest
from typing import Any

import longshore

from pods import WithCluster

SCRIPT = "<script>alert('x')</script>"
HOSTILE = [SCRIPT, "</td></table><img src=x onerror=alert(1)>", "&lt;b&gt;", "\"'><b>", "<!--"]


class Reader(html.parser.HTMLParser):
    """Collects the tags of an HTML text and the contents of its table cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not attrs, attrs
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if data.strip() and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"unexpected comment: {data}")


class Tables(WithCluster):
    def test_the_columns_are_those_of_kubectl(self) -> None:
        self.add("web-0")
        view = self.cluster.view("pods")
        table = Reader(view._repr_html_())
        self.assertEqual(table.tags, {"table", "thead", "tbody", "tr", "th", "td"})
        self.assertEqual(table.rows[0], ["Namespace", "Name", "Ready", "Status", "Restarts", "Age"])
        self.assertEqual(table.rows[1][:2], ["default", "web-0"])
        one = Reader(view.in_namespace("default")._repr_html_())
        self.assertEqual(one.rows[0][0], "Name")
        nodes = Reader(self.cluster.view("nodes")._repr_html_())
        self.assertEqual((nodes.rows[0][0], len(nodes.rows)), ("Name", 1))

    def test_only_the_first_100_objects_are_shown(self) -> None:
        whole = ""
        for index in range(101):
            name = {"name": f"m{index:03}", "namespace": "default"}
            self.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": name})
            if index == 99:
                whole = self.cluster.view("configmaps", "default")._repr_html_()
        self.assertEqual(len(Reader(whole).rows), 101)
        self.assertNotIn("there are more", whole)
        part = self.cluster.view("configmaps", "default")._repr_html_()
        self.assertEqual(len(Reader(part).rows), 101)
        self.assertIn("The first 100; there are more.", part)

    def test_text_of_objects_is_escaped(self) -> None:
        columns = [{"name": SCRIPT, "type": "string", "jsonPath": ".words"}]
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "additionalPrinterColumns": columns}
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "notes.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "notes", "singular": "note", "kind": "Note"},
                "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
            },
        }
        # A manifest string, because then `create` waits until the new kind is served.
        self.cluster.create(json.dumps(definition))
        text = "apiVersion: example.com/v1\nkind: Note\nmetadata: {name: a%s, namespace: default}\nwords: %s\n"
        for index, words in enumerate(HOSTILE):
            self.cluster.create(text % (index, json.dumps(words)))
        shown = self.cluster.view("notes", "default")._repr_html_()
        self.assertNotIn("<script", shown)
        table = Reader(shown)
        self.assertEqual(table.tags, {"table", "thead", "tbody", "tr", "th", "td"})
        self.assertEqual(table.rows[0], ["Name", SCRIPT])
        self.assertEqual([row[1] for row in table.rows[1:]], HOSTILE)


class HostileServer(http.server.BaseHTTPRequestHandler):
    """A server that sends names that no object can have."""

    def do_GET(self) -> None:
        columns = [{"name": words, "type": "string", "priority": 0} for words in [*HOSTILE, "Empty"]]
        meta = {"name": SCRIPT, "namespace": SCRIPT}
        cells = [*HOSTILE[:4], {"<b>": [SCRIPT]}]
        rows = [{"cells": cells, "object": {"metadata": meta}}]
        table = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}}
        body = json.dumps({**table, "columnDefinitions": columns, "rows": rows}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Hostile(unittest.TestCase):
    def test_invalid_names_from_a_server_are_escaped(self) -> None:
        with http.server.HTTPServer(("127.0.0.1", 0), HostileServer) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            self.addCleanup(thread.join)
            self.addCleanup(server.shutdown)
            with longshore.Cluster(f"http://127.0.0.1:{server.server_port}") as cluster:
                shown = cluster.view("pods")._repr_html_()
            table = Reader(shown)
            self.assertNotIn("<script", shown)
            self.assertEqual(table.tags, {"table", "thead", "tbody", "tr", "th", "td"})
            self.assertEqual(table.rows[0], ["Namespace", *HOSTILE, "Empty"])
            self.assertEqual(table.rows[1], [SCRIPT, *HOSTILE[:4], json.dumps({"<b>": [SCRIPT]}, separators=(",", ":")), ""])


if __name__ == "__main__":
    unittest.main()
