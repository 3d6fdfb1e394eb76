"""A request that was found good, and the errors that Google answers to others."""

import filters
from world import LINKS, NUMBER, PROJECT, ZONES

RESOURCES = {"disk": "disks", "operation": "operations", "instance": "instances", "instanceGroupManager": "instanceGroupManagers"}


class Refusal(Exception):
    """An error as Google answers it."""

    def __init__(self, code, reason, message, status=None, domain="global"):
        super().__init__(message)
        self.code, self.reason, self.message, self.status, self.domain = code, reason, message, status, domain


def absent(path):
    return Refusal(404, "notFound", f"The resource '{path}' was not found")


def not_ready(instance):
    return Refusal(400, "resourceNotReady", f"The resource '{instance.path}' is not ready")


def forbidden(permission, path):
    return Refusal(403, "forbidden", f"Required '{permission}' permission for '{path}'")


class Call:
    """A request that was found good, by whom and of what."""

    def __init__(self, world, method, params, query, body, user):
        self.world, self.method, self.params, self.query = world, method, params, query
        self.body, self.user, self.fault, self.most = body, user, None, 120.0

    def resource(self):
        """What it is about, as permissions name it."""
        path = f"projects/{self.params['project']}"
        for scope in ("zone", "region"):
            if scope in self.params:
                path += f"/{scope}s/{self.params[scope]}"
        for name, kind in RESOURCES.items():
            if name in self.params:
                path += f"/{kind}/{self.params[name]}"
        return path

    def check_scope(self):
        """The project, zone and region that it names are there."""
        if self.params["project"] not in (PROJECT, str(NUMBER)):
            raise absent(f"projects/{self.params['project']}")
        for scope, known in (("zone", set(ZONES)), ("region", set(ZONES.values()))):
            value = self.params.get(scope)
            if value is not None and value not in known:
                raise Refusal(400, "invalid", f"Invalid value for field '{scope}': '{value}'. Unknown {scope}.")

    def instance(self):
        found = self.world.find(self.params["zone"], self.params["instance"])
        if found is None:
            raise absent(self.resource())
        return found

    def begin(self, kind, instance, work, alone=True):
        more = {"fault": self.fault, "alone": alone}
        return self.world.begin(kind, instance, self.user.email, self.query.get("requestId"), work, **more)

    def listed(self, resources, kind, where):
        told, token = filters.page(resources, self.query, self.method.known)
        answer = {"kind": kind, "id": f"projects/{PROJECT}/{where}", "selfLink": f"{LINKS}/projects/{PROJECT}/{where}"}
        if told:
            answer["items"] = told
        if token:
            answer["nextPageToken"] = token
        return answer
