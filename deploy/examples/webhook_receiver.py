#!/usr/bin/env python3
"""An example of a receiver of Picket's webhook: prints what it gets, and does what a receiver must do.

usage: webhook_receiver.py --token-file FILE [--listen 127.0.0.1:8470] [--state FILE] [--cert FILE --key FILE]

Put the detaching of your storage into let_go(). The duties of a receiver, each marked below:

  0. It does nothing for whoever has not the gateways' token (their token_file): anybody else would let go the volumes of a node that runs.
  1. It begins nothing after the request's not_after: Picket waits for no longer before it powers the node on again.
  2. It lets a release through once for each key (header Idempotency-Key), and answers a repetition as it answered first.
  3. It refuses, with 409, a generation that is older than the newest it saw of that node, also after a restart.
  4. It says "complete" only when the node's attachments are gone. What takes longer is "accepted", with a status_url.

Answers other than the two, or none, leave the release open: Picket asks again until its deadline, then a person.
Its clock must be right to 5 seconds. Without --cert it speaks plain HTTP: then keep it on loopback."""

import argparse
import hmac
import http.server
import json
import os
import ssl
import sys
import threading
import time

LARGEST = 1 << 20


def let_go(request):
    """Lets the volumes of a node go that is proven off. Returns what to tell people when they are gone."""
    return "volumes of %s let go (this is an example: nothing was detached)" % request["node"]


class Book:
    """What must be remembered: answers by key, and the newest generation of each node."""

    def __init__(self, path):
        self.path, self.lock = path, threading.Lock()
        self.answers, self.generations = {}, {}
        if path and os.path.exists(path):
            with open(path) as file:
                kept = json.load(file)
            self.answers, self.generations = kept["answers"], kept["generations"]

    def save(self):
        if self.path:
            fresh = self.path + ".new"
            with open(fresh, "w") as file:
                json.dump({"answers": self.answers, "generations": self.generations}, file)
                file.flush()
                os.fsync(file.fileno())
            os.rename(fresh, self.path)

    def release(self, key, request):
        """The answer to a request for release, as HTTP status and body."""
        with self.lock:
            node, generation = request["node"], request["generation"]
            newest = self.generations.get(node, 0)
            if generation < newest:  # duty 3
                return 409, {"detail": "generation %d of %s was seen" % (newest, node)}
            if key in self.answers:  # duty 2
                return 200, self.answers[key]
            if time.time() * 1000 > request["not_after_unix_ms"]:  # duty 1
                return 410, {"detail": "too late"}
            # Before anything is done, so that a crash in the middle cannot let an older one through.
            self.generations[node] = generation
            self.save()
            answer = {"status": "complete", "detail": let_go(request)}  # duty 4
            self.answers[key] = answer
            self.save()
            return 200, answer


class Receiver(http.server.BaseHTTPRequestHandler):
    """One request."""

    book, token = None, None

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        # duty 0
        if self.token and not hmac.compare_digest(self.headers.get("Authorization", ""), "Bearer " + self.token):
            return self.answer(401, {"detail": "no token, or a wrong one"})
        if not 0 < length <= LARGEST:
            return self.answer(413, {"detail": "the body is empty or too large"})
        try:
            request = json.loads(self.rfile.read(length))
            status, body = self.book.release(self.headers["Idempotency-Key"] or request["key"], request)
        except (ValueError, KeyError, TypeError) as error:
            return self.answer(400, {"detail": "not a request of Picket's: %r" % error})
        self.show(request, status, body)
        return self.answer(status, body)

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def show(self, request, status, body):
        evidence = request.get("evidence") or {}
        lines = [
            "release of %(node)s, generation %(generation)s" % request,
            "  key        " + request["key"],
            "  not after  " + request["not_after"],
            "  evidence   %s, off since %s, confirmed %s"
            % tuple(evidence.get(name, "?") for name in ("grade", "off_since", "confirmed_at")),
        ]
        for device in evidence.get("devices", []):
            lines.append("             %(device)s said %(said)s, %(readings)d times in %(lasted_ms)d ms" % device)
        lines.append("  answered   %d %s" % (status, json.dumps(body)))
        print("\n".join(lines), flush=True)

    def log_message(self, *_):
        """The lines above say more."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--listen", default="127.0.0.1:8470")
    parser.add_argument("--state", help="where to remember; without it a restart forgets (duty 3)")
    parser.add_argument("--token-file", help="what the gateways' token_file holds; needed (duty 0)")
    parser.add_argument("--without-token", action="store_true", help="let volumes go for anybody who reaches it: for trials alone")
    parser.add_argument("--cert")
    parser.add_argument("--key")
    options = parser.parse_args()
    Receiver.book = Book(options.state)
    if options.token_file:
        with open(options.token_file) as file:
            Receiver.token = file.read().strip()
    if not Receiver.token and not options.without_token:
        parser.error("a --token-file with a token is needed: without one anybody who reaches this lets go the volumes of a node that runs")
    host, port = options.listen.rsplit(":", 1)
    server = http.server.ThreadingHTTPServer((host, int(port)), Receiver)
    if options.cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.cert, options.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print("listening on %s:%d" % server.server_address[:2], file=sys.stderr, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
