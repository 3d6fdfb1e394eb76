"""What tests ask, by POST with JSON under /_picket/:

    make      {"count": 1, "zone": "", "name": "", "disks": [...], "ssds": 0, "labels": {}, "group": "", "scheduling": {}}
                  instances that run, each with a root, such disks and so many local SSDs, by that group: [{id, name, zone, disks}]
                  a disk: {"device": "data-0", "name": "", "mode": "READ_WRITE", "regional": false, "disk": "one that there is"}
    user      {"permissions": ["compute.instances.get"], "life": 3600}  a service account that may do just that ("*": all), and what is
                  of it: {email, key, external, subject}; its tokens live for so many seconds
    life      {"email": "", "life": 5}, revoke {"email": ""}  its tokens' life from now on; none of those that there are is good
    token     {"email": ""}           an access token of it
    metadata  {"email": ""}           the address of a metadata server of a machine that has this service account
    treat     {"instance": "id", ...} how it is treated from now on, all of it anew: seconds of `pending` (an operation), `stopping`,
                  `graceful`, `acpi`, `starting`, `attaching`, `detaching`; stuck: the stage that never ends; word: what its state is
                  called, whatever it is; busy: "join", where another stop while it stops shall be taken
    rule      {"method": "instances.stop", "names": "id or name", "times": 1, "do": {...}}  what becomes of the next such requests:
                  status, reason, message, domain: it is refused so; do: "lost" (done, and not answered), "late" (heard only after
                  `seconds`), "delayed" (done, and answered after `seconds`), "garbled", "misshapen", "cut" (done, and answered with what makes
                  no sense), "fault" (taken, and the operation fails with code, message, status)
                  methods are called as in the document, besides oauth.token, sts.token, iamcredentials.generateAccessToken, metadata,
                  of which each request has the name "*"; a rule of the method "*" is one for all, with names "*" of all
    switch    {"instance": "id", "status": "TERMINATED"}  somebody else's hand, at once; what was on its way ends
    replace   {"instance": "id", "disks": true}  the instance goes, another one of its name comes, with its disks: its id
    attach    {"instance": "id", "device": "data-0", "disk": "name", "mode": "READ_WRITE"}  somebody else's hand, at once; without a
                  disk a new one: its path
    detach    {"instance": "id", "device": "data-0"}  the same
    state     {"instance": "id"}      the truth: {status, name, labels, devices, busy}; GONE
    disk      {"disk": "name"}        the truth: {users: {instance id: mode}, attached, detached}
    journal   {"names": "id"}         what was asked that names it (nothing: all)
    events    {"names": "id"}         what became of it: [{at, what, instance, name, device, disk}]
    waits     {"seconds": 120}        how long zoneOperations.wait waits at most
    memory    {"seconds": 3600}       how long a request's id is remembered
    bucket    {"limits": {"mutate": 1500}, "interval": 60}  so many requests of a group (mutate, read, list, operation) an interval and a
                  region; without limits: none
    silence   {"on": true}            nothing is heard, and nothing answered, until it is taken back
    held      {}                      how many requests wait in silence
    mend      {"names": "id"}         no rule and no treatment of it is left
"""

import asyncio
import inspect
import json
import time

import aiohttp.web

from call import Refusal
from identity import CLOUD
from world import ZONES, Attached, Disk, Instance

# Requests a minute, for each of these groups, region and project, unless Google was asked for more.
DOCUMENTED = 1500


def group_of(method):
    kind, verb = method.rsplit(".", 1)
    if kind.endswith("Operations"):
        return "operation"
    return "read" if verb == "get" else "list" if "ist" in verb else "mutate"


class Knobs:
    def __init__(self, front):
        self.front, self.world, self.identity = front, front.world, front.identity
        self.journal, self.rules, self.broken, self.attached = [], [], [], {}
        self.heard, self.longest_wait, self.runner, self.address = asyncio.Event(), 120.0, None, ""
        self.limits, self.interval, self.counts, self.held = None, 60.0, {}, 0
        self.heard.set()

    def broke(self, words):
        self.broken.append(words)
        print(f"BROKEN {words}", flush=True)

    async def answer(self, verb, body):
        if self.broken:
            return aiohttp.web.Response(status=500, text="BROKEN\n" + "\n".join(self.broken))
        try:
            told = getattr(self, f"do_{verb}")(**json.loads(body or "{}"))
            told = await told if inspect.isawaitable(told) else told
        except Exception as error:  # The test that asked must learn of it, whatever it is.
            return aiohttp.web.Response(status=400, text=f"{verb}: {type(error).__name__}: {error}")
        return aiohttp.web.json_response(told)

    # What becomes of requests.

    def rule_for(self, method, names):
        for rule in self.rules:
            if rule["method"] in (method, "*") and (rule["names"] == "*" or rule["names"] in names) and rule["times"] > 0:
                rule["times"] -= 1
                return rule["do"]
        return {}

    def bucket(self, method, params):
        if self.limits is None:
            return
        group = group_of(method)
        where = params.get("region") or ZONES.get(params.get("zone"), "global")
        at = int(time.time() / self.interval)
        key = (group, where, at)
        self.counts = {one: count for one, count in self.counts.items() if one[2] == at}
        self.counts[key] = self.counts.get(key, 0) + 1
        if self.counts[key] > self.limits.get(group, DOCUMENTED):
            words = f"Quota exceeded for quota group '{group}' and limit 'per minute per region' of service 'compute.googleapis.com'."
            raise Refusal(403, "rateLimitExceeded", words, domain="usageLimits")

    def disguise(self, told):
        """Calls states what a treatment calls them: what is said is not what is."""
        if isinstance(told, dict):
            word = self.world.treatments.get(told.get("id"), {}).get("word")
            if word and told.get("kind") == "compute#instance":
                told["status"] = word
            if told.get("kind") != "compute#instance":
                for inner in told.values():
                    self.disguise(inner)
        elif isinstance(told, list):
            for inner in told:
                self.disguise(inner)

    # The verbs.

    def do_make(self, count=1, zone="europe-west3-a", name=None, disks=(), ssds=0, labels=None, group=None, scheduling=None):
        made = []
        for _ in range(count):
            instance = Instance(name or f"picket-{len(self.world.instances)}-{len(self.world.disks)}", zone)
            instance.labels, instance.group, instance.scheduling = dict(labels or {}), group or None, dict(scheduling or {})
            self.world.add(instance)
            self.attach(instance, "persistent-disk-0", Disk(instance.name, zone), "READ_WRITE", boot=True)
            for at, one in enumerate(disks):
                self.attach(instance, one["device"], self.disk_for(instance, at, one), one.get("mode", "READ_WRITE"))
            for at in range(ssds):
                instance.disks.append(Attached(f"local-ssd-{at}", auto_delete=True))
            of = {one.device: one.disk.name for one in instance.disks if one.disk and not one.boot}
            made.append({"id": instance.id, "name": instance.name, "zone": zone, "disks": of})
        return made

    def disk_for(self, instance, at, one):
        if one.get("disk"):
            return next(disk for disk in self.world.disks.values() if disk.name == one["disk"])
        name = one.get("name") or f"{instance.name}-data-{at}"
        made = Disk(name, region=ZONES[instance.zone]) if one.get("regional") else Disk(name, instance.zone)
        made.labels = dict(one.get("labels") or {})
        return made

    def attach(self, instance, device, disk, mode, boot=False):
        self.world.disks[disk.path] = disk
        self.world.attach(instance, Attached(device, disk, mode, boot, auto_delete=boot))

    async def do_user(self, permissions, life=3600):
        return await self.identity.user(permissions, life)

    def do_life(self, email, life):
        self.identity.users[email].life = life

    def do_revoke(self, email):
        self.identity.users[email].revoked = time.time()

    def do_token(self, email):
        user = self.identity.users[email]
        return self.identity.issue(user, "given", {CLOUD}, user.life)[0]

    async def do_metadata(self, email):
        site = aiohttp.web.TCPSite(self.runner, self.address, 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        self.attached[port] = email
        return f"{self.address}:{port}"

    def do_treat(self, instance, **how):
        self.world.treat(instance, how)

    def do_rule(self, **rule):
        self.rules.append(rule)

    async def do_switch(self, instance, status):
        machine = self.world.instances[instance]
        if machine.busy:
            await self.world.cancel(machine.busy, machine)
        self.world.become(machine, status)

    def do_replace(self, instance, disks=True):
        old = self.world.instances[instance]
        data = [one for one in old.disks if one.disk and not one.boot]
        self.world.remove(old)
        new = Instance(old.name, old.zone)
        new.labels, new.group, new.scheduling = dict(old.labels), old.group, dict(old.scheduling)
        self.world.add(new)
        self.attach(new, "persistent-disk-0", Disk(new.name, new.zone), "READ_WRITE", boot=True)
        for one in data if disks else []:
            self.attach(new, one.device, one.disk, one.mode)
        return new.id

    def do_attach(self, instance, device, disk=None, mode="READ_WRITE"):
        machine = self.world.instances[instance]
        named = {"disk": disk} if disk else {"name": f"{machine.name}-{device}"}
        found = self.disk_for(machine, 0, named)
        self.attach(machine, device, found, mode)
        return found.path

    def do_detach(self, instance, device):
        machine = self.world.instances[instance]
        self.world.detach(machine, next(one for one in machine.disks if one.device == device))

    def do_state(self, instance):
        machine = self.world.instances.get(instance)
        if machine is None:
            return {"status": "GONE", "name": "", "labels": {}, "devices": [], "busy": None}
        devices, busy = [one.device for one in machine.disks], machine.busy.kind if machine.busy else None
        return {"status": machine.status, "name": machine.name, "labels": machine.labels, "devices": devices, "busy": busy}

    def do_disk(self, disk):
        found = next(one for one in self.world.disks.values() if one.name == disk)
        users = {instance.id: attached.mode for instance, attached in found.users.items()}
        return {"users": users, "attached": found.attached, "detached": found.detached}

    def do_journal(self, names=""):
        return [entry for entry in self.journal if not names or names in entry["names"]]

    def do_events(self, names=""):
        of = ("instance", "name", "disk")
        return [event for event in self.world.events if not names or names in [event.get(key) for key in of]]

    def do_waits(self, seconds):
        self.longest_wait = seconds

    def do_memory(self, seconds):
        self.front.lasts = seconds

    def do_bucket(self, limits=None, interval=60.0):
        self.limits, self.interval, self.counts = limits, interval, {}

    def do_silence(self, on):
        self.heard.clear() if on else self.heard.set()

    def do_held(self):
        return self.held

    def do_mend(self, names):
        self.rules[:] = [rule for rule in self.rules if rule["names"] != names]
        self.world.treat(names, {})
