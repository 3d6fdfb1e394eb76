"""What stands before each service: it notes every request and its answer, and does to some what a rule says.

A rule is {"service": "identity|compute|volumes", "method": "POST", "path": PART, "body": PART, "agent": PART, "times": N, "do": WHAT,
"after": SECONDS, "retry": SECONDS}. The parts must occur in the request's path, body and User-Agent; without them all do. WHAT is a number
(that status, and nothing is done), "dropped" (nothing is done, and the connection cut), "unanswered" (it is done, and the
connection cut), "cut" (half of the answer's body), "nonsense" (JSON of another shape), "slow" (it is done after so long), "late" (it is done, and answered after so
long). A delay ends when its rule is taken back.
"""
import io
import itertools
import json
import socket
import threading
import time

WORDS = {401: "Unauthorized", 403: "Forbidden", 409: "Conflict", 429: "Too Many Requests", 500: "Internal Server Error",
         502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}


class Layer:
    def __init__(self, inner, service, knobs, journal):
        self.inner, self.service, self.knobs, self.journal = inner, service, knobs, journal
        self.numbers, self.lock, self.used = itertools.count(1), threading.Lock(), {}

    def __call__(self, env, start_response):
        method, path = env["REQUEST_METHOD"], env.get("PATH_INFO", "")
        query, body = env.get("QUERY_STRING"), body_of(env)
        number = f"{self.service}-{next(self.numbers)}"
        shown = path + (f"?{query}" if query else "")
        self.journal.note("asked", n=number, service=self.service, method=method, path=shown, body=self.told(body),
                          version=env.get("HTTP_OPENSTACK_API_VERSION"), agent=env.get("HTTP_USER_AGENT"))
        key, rule = self.rule(method, shown, body.decode(errors="replace"), env.get("HTTP_USER_AGENT") or "")
        what = rule.get("do")
        if what == "slow":
            self.delay(key, rule)
        if isinstance(what, int):
            text = json.dumps({"error": {"code": what, "title": WORDS.get(what, "Said"), "message": "as it was told"}})
            retry = [("Retry-After", str(rule["retry"]))] if "retry" in rule else []
            status, headers, answer = f"{what} {WORDS.get(what, 'Said')}", retry + [("Content-Type", "application/json")], text.encode()
        elif what == "dropped":
            status, headers, answer = "500 Dropped", [], b""
        else:
            status, headers, answer = ask(self.inner, env)
        if what == "late":
            self.delay(key, rule)
        if what == "nonsense":
            answer = b'{"server": [{"id": 7}], "servers": "none"}'
        ids = {name.lower(): value for name, value in headers}
        self.journal.note("answered", n=number, status=int(status.split()[0]), did=what,
                          request=ids.get("x-openstack-request-id") or ids.get("x-compute-request-id"),
                          user=env.get("HTTP_X_USER_ID"), project=env.get("HTTP_X_PROJECT_ID"))
        if what in ("dropped", "unanswered"):
            env["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
        # An answer without a body has no length either where HTTP says so.
        length = [] if status.startswith(("204", "304")) else [("Content-Length", str(len(answer)))]
        start_response(status, headers + length)
        return [answer[: len(answer) // 2] if what == "cut" else answer]

    def told(self, body):
        """A request's body for the journal, without secrets."""
        try:
            told = json.loads(body)
        except ValueError:
            return None
        if self.service == "identity":
            return {"methods": told.get("auth", {}).get("identity", {}).get("methods")} if isinstance(told, dict) else None
        return told

    def rule(self, method, path, body, agent):
        """The rule that holds for this request, if one does; it wears off."""
        with self.lock:
            for key, rule in self.knobs.requests():
                meant = (rule.get("service", "compute"), rule.get("method", method)) == (self.service, method)
                parts = (("path", path), ("body", body), ("agent", agent))
                if meant and all(rule.get(part, "") in text for part, text in parts):
                    if self.used.get(key, 0) < rule.get("times", 1):
                        self.used[key] = self.used.get(key, 0) + 1
                        return key, rule
        return None, {}

    def delay(self, key, rule):
        begun = time.monotonic()
        while time.monotonic() - begun < rule.get("after", 0) and any(key == other for other, _ in self.knobs.requests()):
            time.sleep(0.01)


def body_of(env):
    """The request's body, which stays there for whoever reads it next."""
    length = int(env.get("CONTENT_LENGTH") or 0)
    body = env["wsgi.input"].read(length) if length else b""
    env["wsgi.input"] = io.BytesIO(body)
    return body


def ask(inner, env):
    """What the service itself answers."""
    said = {}

    def begun(status, headers, _error=None):
        said["status"], said["headers"] = status, headers
        return lambda data: said.setdefault("written", []).append(data)

    answer = inner(env, begun)
    try:
        body = b"".join(answer)
    finally:
        if hasattr(answer, "close"):
            answer.close()
    return said["status"], said["headers"], b"".join(said.get("written", [])) + body
