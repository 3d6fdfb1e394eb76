"""Compute Engine for tests: Google's discovery document as the law, a world behind it, signatures, permissions, faults, a journal.

    compute.py ADDRESS PORT

Every request is held against the document, and every answer of ours as well: one that is not allowed is answered 500, and from then on
everything that a test asks fails. Beside Compute Engine it is an OAuth endpoint, a security token service, an impersonator and a metadata
server (`identity.py`, `doors.py`), and it serves the document itself. What tests ask, under /_picket/, says `knobs.py`.
"""

import asyncio
import json
import re
import sys
import time
import urllib.parse
import uuid

import aiohttp.web

import doors
import filters
from call import Call, Refusal, forbidden
from document import BASE, Document, Violation, served
from identity import Identity, Refused
from knobs import Knobs
from methods import METHODS, PERMISSIONS
from world import NUMBER, PROJECT, Operation, World

# For how long a request's id is remembered.
MEMORY = 3600.0
# A longer address is refused by the front ends of Google's.
LONGEST_LINE = 16 * 1024


def error(refusal):
    told = {"message": refusal.message, "domain": refusal.domain, "reason": refusal.reason}
    if refusal.code == 401:
        told.update(location="Authorization", locationType="header")
    body = {"code": refusal.code, "message": refusal.message, "errors": [told]}
    if refusal.status:
        body["status"] = refusal.status
    return {"error": body}


def whole(status, told, headers=None):
    kind = "application/json; charset=UTF-8"
    body = json.dumps(told).encode()
    return aiohttp.web.Response(status=status, body=body, headers={"Content-Type": kind, **(headers or {})})


class Front:
    def __init__(self, endpoint):
        self.endpoint, self.document, self.world = endpoint, Document(), World()
        self.identity = Identity(PROJECT, NUMBER, endpoint)
        self.knobs = Knobs(self)
        self.memory, self.lasts = {}, MEMORY

    async def __call__(self, request):
        path = request.rel_url.raw_path
        body = (await request.read()).decode("utf-8", "replace")
        if path.startswith("/_picket/"):
            return await self.knobs.answer(path.removeprefix("/_picket/"), body)
        if path in ("/discovery/v1/apis/compute/v1/rest", "/$discovery/rest"):
            return whole(200, served(self.endpoint))
        if not self.knobs.heard.is_set():
            self.knobs.held += 1
            await self.knobs.heard.wait()
            self.knobs.held -= 1
            return drop(request)
        if not path.startswith(BASE):
            return await doors.answer(self, request, body)
        return await self.compute(request, body)

    async def compute(self, request, body):
        entry = {"came": time.time(), "at": time.time(), "method": "", "path": request.rel_url.raw_path, "status": 0}
        entry.update(query=urllib.parse.parse_qsl(request.rel_url.raw_query_string, keep_blank_values=True), body=body)
        entry.update(token=None, violation=None, reason=None, names=[])
        self.knobs.journal.append(entry)
        method, params, fault = None, {}, None
        try:
            method, params = self.document.find(request.method, entry["path"])
            entry["method"] = method.id
        except Violation as violation:
            fault = violation
        names = self.names(params, entry)
        entry["names"] = sorted(names)
        do = self.knobs.rule_for(entry["method"], names)
        if do.get("do") == "late":
            await asyncio.sleep(do["seconds"])
            entry["at"] = time.time()
        try:
            if "status" in do and "do" not in do:
                reason = do.get("reason", "backendError")
                raise Refusal(do["status"], reason, do.get("message", "No."), do.get("word"), do.get("domain", "global"))
            told = await self.performed(request, entry, method, params, fault, do)
            status, headers = 200, {}
        except Refusal as refusal:
            told, status = error(refusal), refusal.code
            headers = {"WWW-Authenticate": 'Bearer realm="https://accounts.google.com/"'} if status == 401 else {}
            entry["reason"] = refusal.reason
        if do.get("do") == "lost":
            return drop(request)
        if do.get("do") == "delayed":
            await asyncio.sleep(do["seconds"])
        entry["status"] = status
        return await self.sent(request, whole(status, told, headers), do.get("do"))

    async def performed(self, request, entry, method, params, fault, do):
        """What is answered to a request that was heard, after everything that may stand against it."""
        query, said = {}, None
        try:
            if fault:
                raise fault
            self.document.check_path(method, params)
            query = self.document.check_query(method, entry["query"])
            said = self.document.check_body(method, entry["body"])
            if "requestId" in query:
                check_request_id(query["requestId"])
        except Violation as violation:
            fault = violation
            entry["violation"] = violation.message
        entry["body"] = said if said is not None else entry["body"]
        token = self.bearer(request, entry)
        if method and not token.scopes & method.scopes:
            raise Refusal(403, "insufficientPermissions", "Request had insufficient authentication scopes.", "PERMISSION_DENIED")
        if method:
            self.knobs.bucket(method.id, params)
        if fault:
            raise Refusal(fault.code, fault.reason, fault.message)
        if method.id not in METHODS:
            raise Refusal(501, "notImplemented", f"{method.id} does nothing here.", "UNIMPLEMENTED")
        call = Call(self.world, method, params, query, said, token.user)
        call.most, call.fault = self.knobs.longest_wait, do if do.get("do") == "fault" else None
        if not token.user.may(PERMISSIONS[method.id]):
            raise forbidden(PERMISSIONS[method.id], call.resource())
        call.check_scope()
        return self.checked(entry, method, query, await self.done(call))

    def bearer(self, request, entry):
        try:
            token = self.identity.bearer(request.headers.get("Authorization"))
        except Refused as refused:
            entry["token"] = refused.token.told() if hasattr(refused, "token") else None
            raise Refusal(401, refused.error, refused.message, "UNAUTHENTICATED") from refused
        entry["token"] = token.told()
        return token

    async def done(self, call):
        """What the method answers; for a request whose id was heard before, what was answered then, as it is now."""
        request_id = call.query.get("requestId")
        what = self.what(call)
        known = self.memory.get(request_id)
        if known and time.time() - known[2] < self.lasts:
            if known[0] != what:
                words = f"Invalid value for field 'requestId': '{request_id}'. It was used by another request."
                raise Refusal(400, "invalid", words)
            return known[1].told()
        try:
            told = METHODS[call.method.id](call)
            told = await told if asyncio.iscoroutine(told) else told
        except Violation as violation:
            raise Refusal(violation.code, violation.reason, violation.message) from violation
        if isinstance(told, Operation):
            if request_id:
                self.memory[request_id] = (what, told, time.time())
            return told.told()
        return told

    def what(self, call):
        """What makes two requests the same one: an instance's name and its number do."""
        instance = self.world.find(call.params.get("zone"), call.params.get("instance"))
        params = {**call.params, "instance": instance.id if instance else call.params.get("instance")}
        query = {key: value for key, value in call.query.items() if key != "requestId"}
        return json.dumps([call.method.id, params, query, call.body], sort_keys=True)

    def checked(self, entry, method, query, told):
        """The answer, held against the document, and then as a treatment or `fields` wants it."""
        try:
            self.document.check_answer(method, told)
        except Violation as violation:
            self.knobs.broke(f"{method.id}: {violation.message}")
            raise Refusal(500, "backendError", "An answer of this peer violates the document.") from violation
        self.knobs.disguise(told)
        try:
            return filters.part(told, query["fields"]) if "fields" in query else told
        except Violation as violation:
            entry["violation"] = violation.message
            raise Refusal(violation.code, violation.reason, violation.message) from violation

    def names(self, params, entry):
        """All that a request names: path and query, and of an instance both its names."""
        names = set(params.values())
        for key, value in entry["query"]:
            names |= set(re.split(r"[\s()\"'=|,/]+", value)) if key == "filter" else {value}
        names |= set(re.findall(r'disks/([-a-z0-9]+)"', entry["body"]))
        operation = self.world.operations.get(params.get("operation"))
        if operation:
            names |= {operation.target_id, operation.target_path.rsplit("/", 1)[1]}
        for one in [one for name in names for one in self.world.called(name)]:
            names |= {one.id, one.name}
        return names

    async def sent(self, request, answer, how):
        if how == "garbled":
            return aiohttp.web.Response(body=b"<html>hello</html>", content_type="text/html")
        if how == "misshapen":
            return whole(200, {"id": {}, "name": 7, "status": ["RUNNING"], "items": "none", "users": 3})
        if how == "cut":
            stream = aiohttp.web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
            stream.content_length = len(answer.body)
            await stream.prepare(request)
            await stream.write(answer.body[: len(answer.body) // 2])
            request.transport.close()
            return stream
        return answer


def check_request_id(text):
    try:
        zero = uuid.UUID(text).int == 0
    except ValueError:
        zero = True
    if zero or len(text) != 36:
        raise Violation(f"Invalid value for field 'requestId': '{text}'. It must be a valid UUID, and not the zero one.", "invalid")


def drop(request):
    """No answer: the connection ends."""
    if request.transport:
        request.transport.abort()
    return aiohttp.web.Response()


async def main(address, port):
    front = Front(f"http://{address}:{port}")
    runner = aiohttp.web.ServerRunner(aiohttp.web.Server(front, max_line_size=LONGEST_LINE, access_log=None))
    await runner.setup()
    front.knobs.runner, front.knobs.address = runner, address
    await aiohttp.web.TCPSite(runner, address, port, backlog=1024).start()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
