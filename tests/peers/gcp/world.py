"""What there really is: instances, disks, operations that take their time, and a list of what became of them when.

A guest here is dead: nothing in it ends by itself. What an operation does is a coroutine; how long its stages last says the
treatment of its instance, also where that is changed while it lasts.
"""

import asyncio
import functools
import secrets
import time
import uuid

from identity import fingerprint, stamp

PROJECT, NUMBER = "picket-tests", 123456789012
ZONES = {"europe-west3-a": "europe-west3", "europe-west3-b": "europe-west3", "us-central1-a": "us-central1"}
LINKS = "https://www.googleapis.com/compute/v1"
TYPES = f"{LINKS}/projects/{PROJECT}/zones"
# Seconds of each stage where no treatment says others. A real one is slower.
LASTING = {"pending": 0.0, "stopping": 0.1, "graceful": 90.0, "acpi": 0.0, "starting": 0.1, "attaching": 0.05, "detaching": 0.05}


def number():
    return str(10**18 + secrets.randbelow(8 * 10**18))


@functools.lru_cache(maxsize=100_000)
def precise(seconds):
    return stamp(seconds)[:-1] + f".{int(seconds % 1 * 1000):03d}+00:00"


class Failed(Exception):
    """How an operation ends that does not succeed."""

    def __init__(self, code, message, status=400, words="BAD REQUEST"):
        super().__init__(message)
        self.code, self.message, self.status, self.words = code, message, status, words


CANCELED = Failed("OPERATION_CANCELED_BY_USER", "Somebody else's hand was quicker.", 409, "CONFLICT")


class Disk:
    def __init__(self, name, zone=None, region=None):
        self.name, self.zone, self.region, self.id = name, zone, region, number()
        self.users, self.created, self.attached, self.detached = {}, time.time(), None, None
        self.labels = {}

    @property
    def path(self):
        where = f"zones/{self.zone}" if self.zone else f"regions/{self.region}"
        return f"projects/{PROJECT}/{where}/disks/{self.name}"

    def told(self):
        told = {
            "kind": "compute#disk", "id": self.id, "name": self.name, "sizeGb": "10", "status": "READY",
            "creationTimestamp": precise(self.created), "selfLink": f"{LINKS}/{self.path}", "physicalBlockSizeBytes": "4096",
            "labelFingerprint": fingerprint(self.labels),
        }  # fmt: skip
        if self.labels:
            told["labels"] = dict(self.labels)
        zone = self.zone or next(name for name, region in ZONES.items() if region == self.region)
        told["type"] = f"{TYPES}/{zone}/diskTypes/pd-balanced"
        if self.zone:
            told["zone"] = f"{LINKS}/projects/{PROJECT}/zones/{self.zone}"
        else:
            told["region"] = f"{LINKS}/projects/{PROJECT}/regions/{self.region}"
            zones = [name for name, region in ZONES.items() if region == self.region]
            told["replicaZones"] = [f"{LINKS}/projects/{PROJECT}/zones/{name}" for name in zones]
        if self.users:
            told["users"] = [instance.link for instance in self.users]
        for name, value in (("lastAttachTimestamp", self.attached), ("lastDetachTimestamp", self.detached)):
            if value:
                told[name] = precise(value)
        return told


class Attached:
    """A disk at an instance; `disk` is none where it is a local SSD."""

    def __init__(self, device, disk=None, mode="READ_WRITE", boot=False, auto_delete=False):
        self.device, self.disk, self.mode, self.boot, self.auto_delete = device, disk, mode, boot, auto_delete
        self.leaving = False

    def told(self, index):
        told = {
            "kind": "compute#attachedDisk", "type": "PERSISTENT" if self.disk else "SCRATCH", "mode": self.mode,
            "deviceName": self.device, "index": index, "boot": self.boot, "autoDelete": self.auto_delete,
            "interface": "SCSI" if self.disk else "NVME", "diskSizeGb": "10" if self.disk else "375",
        }  # fmt: skip
        if self.disk:
            told["source"] = f"{LINKS}/{self.disk.path}"
        return told


class Instance:
    def __init__(self, name, zone):
        self.name, self.zone, self.id, self.status = name, zone, number(), "RUNNING"
        self.disks, self.labels, self.group, self.scheduling = [], {}, None, {}
        self.created = self.started = time.time()
        self.stopped = self.suspended = None
        # What it is busy with, and who may end its grace.
        self.busy, self.grace_over = None, asyncio.Event()

    @property
    def path(self):
        return f"projects/{PROJECT}/zones/{self.zone}/instances/{self.name}"

    @property
    def link(self):
        return f"{LINKS}/{self.path}"

    def local_ssd(self):
        return any(one.disk is None for one in self.disks)

    def told(self):
        metadata = {"kind": "compute#metadata", "fingerprint": fingerprint(self.group)}
        if self.group:
            manager = f"projects/{NUMBER}/zones/{self.zone}/instanceGroupManagers/{self.group}"
            metadata["items"] = [{"key": "created-by", "value": manager}]
        scheduling = {"onHostMaintenance": "MIGRATE", "automaticRestart": True, "preemptible": False, "provisioningModel": "STANDARD"}
        told = {
            "kind": "compute#instance", "id": self.id, "name": self.name, "status": self.status, "selfLink": self.link,
            "zone": f"{LINKS}/projects/{PROJECT}/zones/{self.zone}", "creationTimestamp": precise(self.created),
            "machineType": f"{TYPES}/{self.zone}/machineTypes/e2-medium", "cpuPlatform": "Intel Broadwell",
            "canIpForward": False, "deletionProtection": False, "startRestricted": False, "fingerprint": fingerprint(self.id),
            "tags": {"fingerprint": "42WmSpB8rSM="}, "metadata": metadata, "scheduling": {**scheduling, **self.scheduling},
            "disks": [one.told(index) for index, one in enumerate(self.disks)],
            "labelFingerprint": fingerprint(self.labels), "lastStartTimestamp": precise(self.started),
            "networkInterfaces": [{"kind": "compute#networkInterface", "name": "nic0", "networkIP": "10.0.0.2"}],
        }  # fmt: skip
        if self.labels:
            told["labels"] = dict(self.labels)
        for name, value in (("lastStopTimestamp", self.stopped), ("lastSuspendedTimestamp", self.suspended)):
            if value:
                told[name] = precise(value)
        return told


class Operation:
    def __init__(self, kind, target, user, request_id):
        self.kind, self.target, self.user, self.request_id = kind, target, user, request_id
        self.zone, self.id, self.status = target.zone, number(), "RUNNING"
        self.target_path, self.target_id = target.path, target.id
        self.name = f"operation-{int(time.time() * 1000)}-{secrets.token_hex(6)}-{uuid.uuid4().hex[:8]}-{uuid.uuid4().hex[:8]}"
        self.inserted, self.begun, self.ended = time.time(), None, None
        self.error, self.done, self.task = None, asyncio.Event(), None

    def told(self):
        link = f"projects/{PROJECT}/zones/{self.zone}"
        told = {
            "kind": "compute#operation", "id": self.id, "name": self.name, "operationType": self.kind, "status": self.status,
            "zone": f"{LINKS}/{link}", "selfLink": f"{LINKS}/{link}/operations/{self.name}", "user": self.user,
            "targetLink": f"{LINKS}/{self.target_path}", "targetId": self.target_id, "insertTime": precise(self.inserted),
            "progress": 100 if self.status == "DONE" else 0,
        }  # fmt: skip
        if self.request_id:
            told["clientOperationId"] = self.request_id
        for name, value in (("startTime", self.begun), ("endTime", self.ended)):
            if value:
                told[name] = precise(value)
        if self.error:
            told["error"] = {"errors": [{"code": self.error.code, "message": self.error.message}]}
            told["httpErrorStatusCode"], told["httpErrorMessage"] = self.error.status, self.error.words
        return told


class World:
    def __init__(self):
        self.instances, self.names, self.disks, self.operations, self.groups = {}, {}, {}, {}, {}
        # `treated` is set, and another one put in its place, whenever a treatment changes.
        self.events, self.treatments, self.treated = [], {}, asyncio.Event()

    def note(self, what, instance, **more):
        self.events.append({"at": time.time(), "what": what, "instance": instance.id, "name": instance.name, **more})

    async def lasting(self, instance, stage, cut=None):
        """Waits as long as that stage of it lasts, or until `cut`; for ever, where it is treated so."""
        began = time.monotonic()
        while not (cut and cut.is_set()):
            changed, how = self.treated, self.treatments.get(instance.id, {})
            stuck = how.get("stuck") == stage
            left = began + how.get(stage, LASTING[stage]) - time.monotonic()
            if left <= 0 and not stuck:
                return
            waits = [asyncio.ensure_future(event.wait()) for event in (changed, cut) if event]
            try:
                await asyncio.wait(waits, timeout=None if stuck else left, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waits:
                    one.cancel()

    def treat(self, instance, how):
        if how:
            self.treatments[instance] = how
        else:
            self.treatments.pop(instance, None)
        changed, self.treated = self.treated, asyncio.Event()
        changed.set()

    def begin(self, kind, instance, user, request_id, work, fault=None, alone=True):
        """An operation that does `work`, or ends with `fault`. `alone`: no other such one begins before it ends."""
        operation = Operation(kind, instance, user, request_id)
        self.operations[operation.name] = self.operations[operation.id] = operation
        how = self.treatments.get(instance.id, {})
        if how.get("pending") or how.get("stuck") == "pending":
            operation.status = "PENDING"
        else:
            operation.begun = time.time()
        if alone:
            instance.busy = operation
        operation.task = asyncio.create_task(self.run(operation, instance, work, fault))
        return operation

    async def run(self, operation, instance, work, fault):
        try:
            await self.lasting(instance, "pending")
            operation.status, operation.begun = "RUNNING", operation.begun or time.time()
            if fault:
                raise Failed(fault["code"], fault.get("message", "No."), fault.get("status", 400))
            await work(operation)
        except Failed as error:
            operation.error = error
        except asyncio.CancelledError:
            operation.error = CANCELED
        self.over(operation, instance)

    async def cancel(self, operation, instance):
        operation.task.cancel()
        await asyncio.wait([operation.task])
        # Where it had not made its first step it heard nothing of that.
        if operation.task.cancelled():
            operation.error = CANCELED
            self.over(operation, instance)

    def over(self, operation, instance):
        operation.status, operation.ended = "DONE", time.time()
        operation.done.set()
        if instance.busy is operation:
            instance.busy = None

    def find(self, zone, name):
        """The instance of that name, or of that number."""
        found = self.instances.get(name) or self.names.get((zone, name))
        return found if found and found.zone == zone else None

    def called(self, name):
        """All that have that name or number, wherever they are."""
        named = [self.names[zone, name] for zone in ZONES if (zone, name) in self.names]
        return named + [self.instances[name]] if name in self.instances else named

    def add(self, instance):
        self.instances[instance.id] = self.names[instance.zone, instance.name] = instance

    def attach(self, instance, attached):
        instance.disks.append(attached)
        if attached.disk:
            attached.disk.users[instance], attached.disk.attached = attached, time.time()
            self.note("attached", instance, device=attached.device, disk=attached.disk.name, mode=attached.mode)

    def detach(self, instance, attached, what="detached"):
        if attached not in instance.disks:
            return
        instance.disks.remove(attached)
        if attached.disk:
            attached.disk.users.pop(instance, None)
            attached.disk.detached = time.time()
            self.note(what, instance, device=attached.device, disk=attached.disk.name, mode=attached.mode)

    def become(self, instance, status):
        was, instance.status = instance.status, status
        if status in ("TERMINATED", "STOPPED") and was != status:
            instance.stopped = time.time()
            self.note("off", instance)
        elif status == "SUSPENDED" and was != status:
            instance.suspended = time.time()
            self.note("suspended", instance)
        elif status == "RUNNING" and was != status:
            instance.started = time.time()
            self.note("on", instance)

    def remove(self, instance):
        if instance.busy:
            instance.busy.task.cancel()
        if instance.status not in ("TERMINATED", "STOPPED"):
            self.note("off", instance)
        for attached in list(instance.disks):
            self.detach(instance, attached)
            if attached.auto_delete and attached.disk:
                self.disks.pop(attached.disk.path, None)
        self.instances.pop(instance.id, None)
        if self.names.get((instance.zone, instance.name)) is instance:
            del self.names[instance.zone, instance.name]
        self.note("gone", instance)
