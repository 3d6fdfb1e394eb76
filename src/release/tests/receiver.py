"""A receiver on Python's own HTTP server: accepts a release, and is done when it was asked twice."""

import http.server
import json
import time

jobs = {}


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, code, body):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers["Idempotency-Key"]
        if key != asked["key"] or asked["ask"] != "release" or asked["version"] != 1:
            return self.answer(400, {"detail": "not what was agreed"})
        if time.time() * 1000 > asked["not_after_unix_ms"]:
            return self.answer(410, {"detail": "too late"})
        jobs.setdefault(key, {"node": asked["node"], "asked": 0})
        path = "/jobs/" + key.replace("/", "-")
        self.answer(202, {"status": "accepted", "status_url": path})

    def do_GET(self):
        for key, job in jobs.items():
            if self.path == "/jobs/" + key.replace("/", "-"):
                job["asked"] += 1
                if job["asked"] < 2:
                    return self.answer(200, {"status": "accepted"})
                return self.answer(200, {"status": "complete", "detail": "detached " + job["node"]})
        self.answer(404, {"detail": "no such job"})

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
