#!/usr/bin/env python3
"""OpenStack's sushy-emulator with what it lacks, sessions and faults: sushy_layer.py DIRECTORY USER PASSWORD ARGUMENTS...

Every question about a machine is answered by the emulator itself, with its own ARGUMENTS. Before it stands who lets in by sessions
(DSP0266, "Redfish session login authentication") and does what DIRECTORY/faults.json says, a list of

  {"at": "POST ...Reset", "do": WHAT, "times": N, "after": SECONDS, "retry": SECONDS}

where "at" is the end of the request's line, and WHAT is "busy" (503), "throttled" (429), "task" (202, carried out later), "already"
(409 where the machine is so), "unanswered" (carried out, and the connection cut), "cut" (half of the answer), "slow", "forgotten"
(401: its session is gone), "full" (no further session), "gentle" (no hard off is offered). The list is read anew when the file changes; what was left of it is over.
"""
import base64
import io
import json
import os
import secrets
import socket
import sys
import threading
import time

from sushy_tools.emulator import main as emulator

SESSIONS = "/redfish/v1/SessionService/Sessions"
SERVICE = "/redfish/v1/SessionService"
TASKS = "/redfish/v1/TaskService/Tasks"
IDLE = 60.0
WORDS = {200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 401: "Unauthorized", 404: "Not Found",
         409: "Conflict", 429: "Too Many Requests", 503: "Service Unavailable"}


class Layer:
    def __init__(self, inner, directory, user, password):
        self.inner, self.directory = inner, directory
        self.user, self.password = user, password
        self.basic = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        self.lock = threading.Lock()
        self.sessions, self.tasks, self.faults, self.read_at = {}, {}, [], None
        self.made = 0
        self.note()

    def __call__(self, env, start_response):
        method, path = env["REQUEST_METHOD"], env.get("PATH_INFO", "").rstrip("/")
        with self.lock:
            # Whoever looks on beside the gateway meets none.
            looks_on = env.get("HTTP_USER_AGENT", "").startswith("Python")
            fault = None if looks_on else self.fault(f"{method} {path}")
        what = fault and fault["do"]
        if what == "slow":
            time.sleep(fault["after"])
        token = env.get("HTTP_X_AUTH_TOKEN")
        if what == "forgotten":
            with self.lock:
                self.sessions = {key: one for key, one in self.sessions.items() if one["token"] != token}
        if token is not None:
            if not self.knows(token):
                return self.say(start_response, 401, error("NoValidSession"))
            env["HTTP_AUTHORIZATION"] = self.basic
        if path == SESSIONS and method == "POST":
            return self.log_in(env, start_response, full=what == "full")
        if what == "busy":
            return self.say(start_response, 503, error("ServiceTemporarilyUnavailable"), [("Retry-After", str(fault["retry"]))])
        if what == "throttled":
            return self.say(start_response, 429, error("ServiceTemporarilyUnavailable"), [("Retry-After", str(fault["retry"]))])
        if path == SERVICE or path.startswith(SESSIONS):
            return self.of_sessions(env, start_response, method, path)
        if path.startswith(TASKS):
            return self.of_tasks(start_response, path)
        if what == "task":
            return self.begin_task(env, start_response, fault["after"])
        if what == "already" and self.is_so(env, path):
            return self.say(start_response, 409, error("NoOperation"))
        status, headers, body = self.ask(env)
        if path == "/redfish/v1" and status.startswith("200"):
            root = json.loads(body)
            root["SessionService"] = {"@odata.id": SERVICE}
            root["Links"] = {"Sessions": {"@odata.id": SESSIONS}}
            body = json.dumps(root).encode()
        if what == "gentle":
            system = json.loads(body)
            system["Actions"]["#ComputerSystem.Reset"]["ResetType@Redfish.AllowableValues"] = ["On", "GracefulShutdown"]
            body = json.dumps(system).encode()
        if what == "unanswered":
            env["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        headers = [(key, value) for key, value in headers if key.lower() != "content-length"]
        start_response(status, headers + [("Content-Length", str(len(body)))])
        return [body[: len(body) // 2] if what == "cut" else body]

    def fault(self, line):
        """The fault that holds for this request, if one does; it wears off."""
        place = os.path.join(self.directory, "faults.json")
        try:
            written = os.stat(place).st_mtime_ns
        except FileNotFoundError:
            return None
        if written != self.read_at:
            with open(place) as file:
                self.faults, self.read_at = json.load(file), written
        for fault in self.faults:
            method, end = fault["at"].split(" ", 1)
            if fault["times"] > 0 and line.startswith(method + " ") and line.endswith(end.lstrip(".")):
                fault["times"] -= 1
                return fault
        return None

    def knows(self, token):
        with self.lock:
            now = time.monotonic()
            self.sessions = {key: one for key, one in self.sessions.items() if now - one["used"] < IDLE}
            for one in self.sessions.values():
                if one["token"] == token:
                    one["used"] = now
                    return True
            return False

    def log_in(self, env, start_response, full):
        asked = json.loads(body_of(env) or b"{}")
        if (asked.get("UserName"), asked.get("Password")) != (self.user, self.password):
            return self.say(start_response, 401, error("NoValidSession"))
        if full:
            return self.say(start_response, 503, error("SessionLimitExceeded"))
        with self.lock:
            key, token = secrets.token_hex(4), secrets.token_hex(16)
            self.sessions[key] = {"token": token, "used": time.monotonic()}
            self.made += 1
            self.note()
        place = f"{SESSIONS}/{key}"
        return self.say(start_response, 201, session(key, self.user), [("X-Auth-Token", token), ("Location", place)])

    def note(self):
        """How many sessions were made, and how many are open, for whoever looks on."""
        place = os.path.join(self.directory, "sessions.json")
        with open(place + ".new", "w") as file:
            json.dump({"made": self.made, "open": len(self.sessions)}, file)
        os.replace(place + ".new", place)

    def of_sessions(self, env, start_response, method, path):
        if env.get("HTTP_AUTHORIZATION") != self.basic:
            return self.say(start_response, 401, error("NoValidSession"))
        if path == SERVICE:
            service = {"@odata.id": SERVICE, "ServiceEnabled": True, "SessionTimeout": int(IDLE)}
            return self.say(start_response, 200, {**service, "Sessions": {"@odata.id": SESSIONS}})
        with self.lock:
            if path == SESSIONS:
                members = [{"@odata.id": f"{SESSIONS}/{key}"} for key in self.sessions]
                listed = {"@odata.id": SESSIONS, "Members@odata.count": len(members), "Members": members}
                return self.say(start_response, 200, listed)
            key = path[len(SESSIONS) + 1 :]
            if key not in self.sessions:
                return self.say(start_response, 404, error("ResourceMissingAtURI"))
            if method == "DELETE":
                del self.sessions[key]
                self.note()
                return self.say(start_response, 204, None)
        return self.say(start_response, 200, session(key, self.user))

    def is_so(self, env, path):
        """Whether the machine is as it is told to be."""
        wanted = json.loads(body_of(env) or b"{}").get("ResetType")
        look = dict(env, REQUEST_METHOD="GET", PATH_INFO=path.split("/Actions/")[0], CONTENT_LENGTH="0")
        look["wsgi.input"] = io.BytesIO(b"")
        _, _, body = self.ask(look)
        return json.loads(body).get("PowerState") == {"ForceOff": "Off", "On": "On"}.get(wanted)

    def begin_task(self, env, start_response, after):
        copy = dict(env)
        copy["wsgi.input"] = io.BytesIO(body_of(env))
        key = secrets.token_hex(4)
        self.tasks[key] = None

        def done():
            self.tasks[key] = self.ask(copy)[0]

        threading.Timer(after, done).start()
        place = f"{TASKS}/{key}"
        task = {"@odata.id": place, "Id": key, "Name": "Reset", "TaskState": "Running", "TaskMonitor": place}
        return self.say(start_response, 202, task, [("Location", place)])

    def of_tasks(self, start_response, path):
        status = self.tasks.get(path[len(TASKS) + 1 :], "404")
        if status is None:
            return self.say(start_response, 202, {"TaskState": "Running"}, [("Location", path)])
        return self.say(start_response, int(status.split()[0]), None)

    def ask(self, env):
        """What the emulator itself answers."""
        said = {}

        def begun(status, headers, _error=None):
            said["status"], said["headers"] = status, headers

        body = b"".join(self.inner(env, begun))
        return said["status"], said["headers"], body

    def say(self, start_response, status, body, headers=()):
        text = b"" if body is None else json.dumps(body).encode()
        usual = [("Content-Type", "application/json"), ("Content-Length", str(len(text)))]
        start_response(f"{status} {WORDS.get(status, 'Said')}", usual + list(headers))
        return [text]


def body_of(env):
    """The request's body, which stays there for whoever reads it next."""
    length = int(env.get("CONTENT_LENGTH") or 0)
    body = env["wsgi.input"].read(length)
    env["wsgi.input"] = io.BytesIO(body)
    return body


def session(key, user):
    return {"@odata.id": f"{SESSIONS}/{key}", "Id": key, "Name": "Session", "UserName": user}


def error(name):
    return {"error": {"code": f"Base.1.8.{name}", "message": name,
                      "@Message.ExtendedInfo": [{"MessageId": f"Base.1.8.{name}", "Message": name}]}}


def main():
    directory, user, password = sys.argv[1:4]
    sys.argv[1:4] = []
    run = emulator.app.run

    def behind(*args, **kwargs):
        # By now the emulator has put its own authentication before itself.
        emulator.app.wsgi_app = Layer(emulator.app.wsgi_app, directory, user, password)
        return run(*args, **kwargs)

    emulator.app.run = behind
    return emulator.main()


if __name__ == "__main__":
    sys.exit(main())
