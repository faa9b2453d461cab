"""Who receives the messages of a webhook."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from prefect.blocks.notifications import CustomWebhookNotificationBlock

#: A webhook, as the flow takes it.
BLOCK = "custom-webhook/on-call"


@contextmanager
def receiver() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The address, and the messages that have come in so far."""
    received = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words):
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", received
        server.shutdown()


@contextmanager
def notified() -> Iterator[list[dict[str, str]]]:
    """The messages that `BLOCK`, which is made anew, has sent, each with its title and its text."""
    with receiver() as (url, received):
        name, form = BLOCK.partition("/")[2], {"title": "{{subject}}", "text": "{{body}}"}
        CustomWebhookNotificationBlock(name=name, url=url, json_data=form).save(name, overwrite=True)
        yield received
