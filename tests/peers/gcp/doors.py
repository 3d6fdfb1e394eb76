"""The places where tokens are got: OAuth, the security token service, an impersonation, and the metadata server."""

import json
import re
import time
import urllib.parse

import aiohttp.web

from identity import CLOUD, Refused
from world import NUMBER, PROJECT

FLAVOR = {"Metadata-Flavor": "Google", "Server": "Metadata Server for VM"}
IMPERSONATION = re.compile(r"/v1/projects/-/serviceAccounts/([^/:]+):generateAccessToken")


def json_answer(status, told, headers=None):
    return aiohttp.web.json_response(told, status=status, headers=headers)


def form_of(request, body):
    """What a token endpoint is told, as a form or as JSON."""
    if request.content_type == "application/json":
        told = json.loads(body)
        return told if isinstance(told, dict) else {}
    return dict(urllib.parse.parse_qsl(body))


async def answer(front, request, body):
    path = urllib.parse.unquote(request.rel_url.raw_path)
    entry = {"came": time.time(), "at": time.time(), "method": "", "path": path, "query": [], "body": None, "status": 0}
    entry.update(token=None, violation=None, reason=None, names=[])
    impersonation = IMPERSONATION.fullmatch(path)
    if path == "/token":
        entry["method"] = "oauth.token"
    elif path == "/v1/token":
        entry["method"] = "sts.token"
    elif impersonation:
        entry["method"] = "iamcredentials.generateAccessToken"
    elif path == "/" or path.startswith("/computeMetadata/"):
        entry["method"] = "metadata"
    else:
        words = f"The requested URL {path} was not found on this server."
        return json_answer(404, {"error": {"code": 404, "message": words}})
    front.knobs.journal.append(entry)
    do = front.knobs.rule_for(entry["method"], {"*"})
    if "status" in do:
        entry["status"] = do["status"]
        told = {"error": do.get("reason", "internal_failure"), "error_description": do.get("message", "No.")}
        return json_answer(do["status"], told)
    if entry["method"] == "metadata":
        told = metadata(front, request, path)
        entry["status"] = told.status
        return told
    try:
        if request.method != "POST":
            raise Refused("It is a POST.", "invalid_request", 405)
        if path == "/token":
            told = front.identity.granted(form_of(request, body))
        elif path == "/v1/token":
            told = front.identity.exchanged(form_of(request, body))
        else:
            told = front.identity.impersonated(impersonation.group(1), request.headers.get("Authorization"), json.loads(body or "{}"))
        entry["status"] = 200
        return json_answer(200, told)
    except (Refused, ValueError) as error:
        code, word, message = getattr(error, "code", 400), getattr(error, "error", "invalid_request"), str(error)
        entry["status"], entry["reason"] = code, word or message
        if impersonation:
            return json_answer(code, {"error": {"code": code, "message": message, "status": "PERMISSION_DENIED"}})
        return json_answer(code, {"error": word, "error_description": message})


def metadata(front, request, path):
    """The metadata server: one at each address that `knobs.py` opened, for the service account that it was opened for."""
    email = front.knobs.attached.get(request.transport.get_extra_info("sockname")[1])
    if request.headers.get("Metadata-Flavor") != "Google":
        words = "Your client does not have permission to get this URL: missing required header Metadata-Flavor: Google"
        return aiohttp.web.Response(status=403, text=words, headers=FLAVOR)
    if path == "/":
        return aiohttp.web.Response(text="computeMetadata/\n", headers=FLAVOR)
    key = path.removeprefix("/computeMetadata/v1/").rstrip("/")
    plain = {
        "project/project-id": PROJECT, "project/numeric-project-id": str(NUMBER), "universe/universe-domain": "googleapis.com",
        "universe/universe_domain": "googleapis.com", "instance/zone": f"projects/{NUMBER}/zones/europe-west3-a",
    }  # fmt: skip
    if key in plain:
        return aiohttp.web.Response(text=plain[key], headers=FLAVOR)
    found = re.fullmatch(r"instance/service-accounts/([^/]+)(?:/(\w+))?", key)
    if not email or not found or found.group(1) not in ("default", email):
        return aiohttp.web.Response(status=404, text="Not Found", headers=FLAVOR)
    if found.group(2) == "token":
        scopes = [one for one in request.query.get("scopes", "").split(",") if one]
        return json_answer(200, front.identity.of_metadata(email, scopes), FLAVOR)
    if found.group(2) == "email":
        return aiohttp.web.Response(text=email, headers=FLAVOR)
    if found.group(2) == "scopes":
        return aiohttp.web.Response(text=CLOUD, headers=FLAVOR)
    if found.group(2) is None:
        return json_answer(200, {"aliases": ["default"], "email": email, "scopes": [CLOUD]}, FLAVOR)
    return aiohttp.web.Response(status=404, text="Not Found", headers=FLAVOR)
