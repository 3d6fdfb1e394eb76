"""What the methods do that do something. All others of the document are answered 501.

What Google's pages and other people's reports say of Compute Engine, and what nobody said and is our own choice, stands in the README.
"""

import asyncio

import looking
from call import Refusal, absent, forbidden, not_ready
from identity import fingerprint
from world import NUMBER, PROJECT, Attached, Disk, Failed, Instance

SSD = (
    "VM has a Local SSD attached but an undefined value for `discard-local-ssd`. If using gcloud, please add "
    "`--discard-local-ssd=false` or `--discard-local-ssd=true` to your command."
)
# What each method wants in the policy, beside what is of the disk in attachDisk.
PERMISSIONS = {
    "instances.get": "compute.instances.get", "instances.list": "compute.instances.list",
    "instances.aggregatedList": "compute.instances.list", "instances.start": "compute.instances.start",
    "instances.stop": "compute.instances.stop", "instances.reset": "compute.instances.reset",
    "instances.suspend": "compute.instances.suspend", "instances.resume": "compute.instances.resume",
    "instances.setLabels": "compute.instances.setLabels", "instances.attachDisk": "compute.instances.attachDisk",
    "instances.detachDisk": "compute.instances.detachDisk", "instances.insert": "compute.instances.create",
    "instances.delete": "compute.instances.delete", "disks.get": "compute.disks.get", "disks.list": "compute.disks.list",
    "regionDisks.get": "compute.disks.get", "zoneOperations.get": "compute.zoneOperations.get",
    "zoneOperations.wait": "compute.zoneOperations.get", "zoneOperations.list": "compute.zoneOperations.list",
    "regionOperations.get": "compute.regionOperations.get", "zones.get": "compute.zones.get", "zones.list": "compute.zones.list",
    "regions.get": "compute.regions.get", "projects.get": "compute.projects.get",
    "instanceGroupManagers.list": "compute.instanceGroupManagers.list",
    "instanceGroupManagers.get": "compute.instanceGroupManagers.get",
    "instanceGroupManagers.listManagedInstances": "compute.instanceGroupManagers.get",
}  # fmt: skip


async def nothing(_operation):
    pass


# Power.


def stop(call):
    instance, world = call.instance(), call.world
    discard = call.query.get("discardLocalSsd")
    if instance.local_ssd() and discard is None:
        raise Refusal(400, "badRequest", SSD)
    quick = call.query.get("noGracefulShutdown", False)
    before = None
    if instance.busy:
        ends_grace = instance.status == "PENDING_STOP" and quick
        joins = instance.busy.kind == "stop" and world.treatments.get(instance.id, {}).get("busy") == "join"
        if not ends_grace and not joins:
            raise not_ready(instance)
        before = instance.busy
        if quick:
            instance.grace_over.set()
    if instance.status in ("TERMINATED", "STOPPED"):
        return call.begin("stop", instance, nothing)
    if before:

        async def with_it(_operation):
            await before.done.wait()
            if before.error:
                raise before.error

        return call.begin("stop", instance, with_it, alone=False)

    async def stops(_operation):
        graceful = instance.scheduling.get("gracefulShutdown", {}).get("enabled", False)
        instance.grace_over.clear()
        if not quick and instance.status == "RUNNING":
            world.become(instance, "PENDING_STOP" if graceful else "STOPPING")
            await world.lasting(instance, "graceful", instance.grace_over)
        world.become(instance, "STOPPING")
        if not instance.scheduling.get("skipGuestOsShutdown", False):
            await world.lasting(instance, "acpi")
        await world.lasting(instance, "stopping")
        if instance.local_ssd() and discard:
            world.note("discarded", instance)
        world.become(instance, "TERMINATED")

    return call.begin("stop", instance, stops)


def start(call):
    instance, world = call.instance(), call.world
    if instance.busy:
        raise not_ready(instance)
    if instance.status == "RUNNING":
        return call.begin("start", instance, nothing)
    if instance.status not in ("TERMINATED", "STOPPED"):
        words = f"Instance {instance.path} is in status {instance.status}: only a stopped one is started."
        raise Refusal(400, "invalid", words) if instance.status == "SUSPENDED" else not_ready(instance)

    async def starts(_operation):
        world.become(instance, "PROVISIONING")
        await asyncio.sleep(0)
        world.become(instance, "STAGING")
        await world.lasting(instance, "starting")
        world.become(instance, "RUNNING")

    return call.begin("start", instance, starts)


def lasting_change(kind, begins, between, ends, stage):
    def method(call):
        instance, world = call.instance(), call.world
        if instance.busy or instance.status != begins:
            raise not_ready(instance)

        async def changes(_operation):
            world.become(instance, between)
            await world.lasting(instance, stage)
            world.become(instance, ends)

        return call.begin(kind, instance, changes)

    return method


def reset(call):
    instance = call.instance()
    if instance.busy or instance.status != "RUNNING":
        raise not_ready(instance)

    async def resets(_operation):
        call.world.note("reset", instance)

    return call.begin("reset", instance, resets)


# Disks.


def detach_disk(call):
    instance, world, device = call.instance(), call.world, call.query["deviceName"]
    attached = next((one for one in instance.disks if one.device == device), None)
    if attached is None or attached.disk is None:
        words = f"Invalid value for field 'disk': '{device}'. No attached disk found with device name '{device}'"
        raise Refusal(400, "invalid", words)
    if attached.leaving:
        raise not_ready(instance)
    if attached.boot and instance.status not in ("TERMINATED", "STOPPED"):
        raise Refusal(400, "invalid", f"Invalid resource usage: the boot disk of '{instance.path}' is in use while it runs.")
    attached.leaving = True

    async def detaches(_operation):
        try:
            await world.lasting(instance, "detaching")
            world.detach(instance, attached)
        finally:
            attached.leaving = False

    operation = call.begin("detachDisk", instance, detaches, alone=False)
    if call.fault:
        attached.leaving = False
    return operation


def disk_of(call, source):
    """The disk that a link names, whole or in part."""
    path = source.split("/compute/v1/")[-1]
    disk = call.world.disks.get(path.replace(f"projects/{NUMBER}/", f"projects/{PROJECT}/"))
    if disk is None:
        raise absent(path)
    return disk


def attach_disk(call):
    instance, world, said = call.instance(), call.world, call.body
    disk = disk_of(call, said.get("source", ""))
    if not (call.user.may("compute.disks.use") or call.user.may("compute.disks.useReadOnly")):
        raise forbidden("compute.disks.use", disk.path)
    mode = said.get("mode", "READ_WRITE")
    name = said.get("deviceName") or f"persistent-disk-{len(instance.disks)}"
    if any(one.device == name for one in instance.disks):
        words = f"Invalid value for field 'resource.deviceName': '{name}'. The device name is already in use."
        raise Refusal(400, "invalid", words)

    async def attaches(_operation):
        await world.lasting(instance, "attaching")
        if call.query.get("forceAttach") and disk.region:
            for other, attached in list(disk.users.items()):
                world.detach(other, attached, "forced off")
        for other, attached in disk.users.items():
            if other is instance or "READ_WRITE" in (mode, attached.mode):
                words = f"The disk resource '{disk.path}' is already being used by '{other.path}'"
                raise Failed("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", words)
        world.attach(instance, Attached(name, disk, mode, said.get("boot", False), said.get("autoDelete", False)))

    return call.begin("attachDisk", instance, attaches, alone=False)


# What an instance is.


def set_labels(call):
    instance, said = call.instance(), call.body
    if said.get("labelFingerprint") != fingerprint(instance.labels):
        raise Refusal(412, "conditionNotMet", "Labels fingerprint either invalid or resource labels have changed")
    instance.labels = dict(said.get("labels", {}))
    call.world.note("labelled", instance, labels=dict(instance.labels))
    return call.begin("setLabels", instance, nothing, alone=False)


def insert(call):
    said, zone = call.body, call.params["zone"]
    if not said.get("name") or not said.get("disks"):
        raise Refusal(400, "required", "Required field 'resource.name' or 'resource.disks' not specified")
    if call.world.find(zone, said["name"]):
        path = f"projects/{PROJECT}/zones/{zone}/instances/{said['name']}"
        raise Refusal(409, "alreadyExists", f"The resource '{path}' already exists")
    instance = Instance(said["name"], zone)
    instance.status, instance.labels = "PROVISIONING", dict(said.get("labels", {}))
    instance.scheduling = dict(said.get("scheduling", {}))
    call.world.add(instance)
    for at, one in enumerate(said["disks"]):
        if "source" in one:
            disk = disk_of(call, one["source"])
        else:
            disk = Disk(instance.name if at == 0 else f"{instance.name}-{at}", zone)
            call.world.disks[disk.path] = disk
        boot = one.get("boot", at == 0)
        device = one.get("deviceName", f"persistent-disk-{at}")
        call.world.attach(instance, Attached(device, disk, one.get("mode", "READ_WRITE"), boot, one.get("autoDelete", False)))

    async def comes(_operation):
        await call.world.lasting(instance, "starting")
        call.world.become(instance, "RUNNING")

    return call.begin("insert", instance, comes)


def delete(call):
    instance, world = call.instance(), call.world
    if instance.busy:
        raise not_ready(instance)

    async def goes(_operation):
        world.become(instance, "STOPPING")
        await world.lasting(instance, "stopping")
        instance.busy = None
        world.remove(instance)

    return call.begin("delete", instance, goes)


# A request is answered with what these return; an operation is begun, and told as it then is.
METHODS = {
    "instances.get": lambda call: call.instance().told(), "instances.list": looking.list_instances,
    "instances.aggregatedList": looking.aggregated, "instances.start": start, "instances.stop": stop, "instances.reset": reset,
    "instances.setLabels": set_labels,
    "instances.suspend": lasting_change("suspend", "RUNNING", "SUSPENDING", "SUSPENDED", "stopping"),
    "instances.resume": lasting_change("resume", "SUSPENDED", "STAGING", "RUNNING", "starting"),
    "instances.attachDisk": attach_disk, "instances.detachDisk": detach_disk, "instances.insert": insert,
    "instances.delete": delete, "disks.get": looking.get_disk, "disks.list": looking.list_disks,
    "regionDisks.get": looking.get_disk,
    "zoneOperations.get": lambda call: looking.operation_of(call).told(), "zoneOperations.wait": looking.wait_operation,
    "zoneOperations.list": looking.list_operations, "regionOperations.get": looking.operation_of,
    "zones.get": lambda call: looking.zone_told(call.params["zone"]), "zones.list": looking.list_zones,
    "regions.get": looking.get_region, "projects.get": looking.get_project, "instanceGroupManagers.list": looking.list_managers,
    "instanceGroupManagers.get": looking.get_manager, "instanceGroupManagers.listManagedInstances": looking.managed,
}  # fmt: skip
