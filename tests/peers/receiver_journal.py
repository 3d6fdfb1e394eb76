#!/usr/bin/env python3
"""The shipped example of a receiver (deploy/examples/webhook_receiver.py), which notes besides what it did, and when.

usage: receiver_journal.py EXAMPLE JOURNAL [the example's own options]

A line of JSON for each request: "at", nanoseconds of the wall clock at which it had been read, before anything was done;
"status" that it was answered with; "let_go", whether its volumes were let go for it (not: refused, or answered as before);
and key, node, generation, term, not_after and evidence as the request gave them."""

import importlib.util
import json
import os
import sys
import threading
import time

spec = importlib.util.spec_from_file_location("example", sys.argv[1])
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)
journal = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


class Book(example.Book):
    """The same book; what it let go is known."""

    turn = threading.Lock()

    def release(self, key, request):
        at = time.time_ns()
        # One after the other: of two that come together only one lets go.
        with self.turn:
            known = key in self.answers
            status, body = super().release(key, request)
            words = ("key", "node", "generation", "term", "not_after", "evidence")
            line = {"at": at, "status": status, "let_go": status == 200 and not known}
            line.update((word, request.get(word)) for word in words)
            os.write(journal, json.dumps(line).encode() + b"\n")
        return status, body


example.Book = Book
sys.argv = [sys.argv[1]] + sys.argv[3:]
example.main()
