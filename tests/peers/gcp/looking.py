"""The methods that only look."""

import asyncio
import time

import filters
from call import absent
from world import LINKS, NUMBER, PROJECT, ZONES, number, precise


def instances_of(world, zone):
    return [one.told() for one in world.instances.values() if one.zone == zone]


def list_instances(call):
    zone = call.params["zone"]
    where = f"zones/{zone}/instances"
    return call.listed(instances_of(call.world, zone), "compute#instanceList", where)


def aggregated(call):
    everywhere = [one.told() for one in call.world.instances.values()]
    told, token = filters.page(everywhere, call.query, call.method.known)
    items = {}
    for zone in ZONES:
        here = [one for one in told if one["zone"].endswith(f"/{zone}")]
        data = [{"key": "scope", "value": f"zones/{zone}"}]
        words = f"There are no results for scope 'zones/{zone}' on this page."
        empty = {"warning": {"code": "NO_RESULTS_ON_PAGE", "message": words, "data": data}}
        items[f"zones/{zone}"] = {"instances": here} if here else empty
    where = "aggregated/instances"
    answer = {"kind": "compute#instanceAggregatedList", "id": f"projects/{PROJECT}/{where}", "items": items}
    answer["selfLink"] = f"{LINKS}/projects/{PROJECT}/{where}"
    if token:
        answer["nextPageToken"] = token
    return answer


def get_disk(call):
    where = "zones/" + call.params["zone"] if "zone" in call.params else "regions/" + call.params["region"]
    name = call.params["disk"]
    for disk in call.world.disks.values():
        if name in (disk.name, disk.id) and disk.path.startswith(f"projects/{PROJECT}/{where}/"):
            return disk.told()
    raise absent(call.resource())


def list_disks(call):
    zone = call.params["zone"]
    told = [disk.told() for disk in call.world.disks.values() if disk.zone == zone]
    return call.listed(told, "compute#diskList", f"zones/{zone}/disks")


def operation_of(call):
    operation = call.world.operations.get(call.params["operation"])
    if operation is None or operation.zone != call.params.get("zone"):
        raise absent(call.resource())
    return operation


async def wait_operation(call):
    operation = operation_of(call)
    try:
        await asyncio.wait_for(operation.done.wait(), call.most)
    except asyncio.TimeoutError:
        pass
    return operation.told()


def list_operations(call):
    zone, seen = call.params["zone"], {}
    for operation in call.world.operations.values():
        if operation.zone == zone:
            seen[operation.name] = operation.told()
    return call.listed(list(seen.values()), "compute#operationList", f"zones/{zone}/operations")


def manager(call, name, zone, members):
    link = f"{LINKS}/projects/{PROJECT}/zones/{zone}"
    return {
        "kind": "compute#instanceGroupManager", "id": call.world.groups.setdefault((zone, name), number()), "name": name,
        "zone": link, "selfLink": f"{link}/instanceGroupManagers/{name}", "baseInstanceName": name, "targetSize": len(members),
        "instanceGroup": f"{link}/instanceGroups/{name}", "creationTimestamp": precise(time.time()),
    }  # fmt: skip


def managers(call):
    found = {}
    for one in call.world.instances.values():
        if one.zone == call.params["zone"] and one.group:
            found.setdefault(one.group, []).append(one)
    return found


def list_managers(call):
    zone = call.params["zone"]
    told = [manager(call, name, zone, members) for name, members in managers(call).items()]
    kind = "compute#instanceGroupManagerList"
    return call.listed(told, kind, f"zones/{zone}/instanceGroupManagers")


def members_of(call):
    members = managers(call).get(call.params["instanceGroupManager"])
    if members is None:
        raise absent(call.resource())
    return members


def get_manager(call):
    return manager(call, call.params["instanceGroupManager"], call.params["zone"], members_of(call))


def managed(call):
    told = [{"id": one.id, "instance": one.link, "instanceStatus": one.status, "currentAction": "NONE"} for one in members_of(call)]
    return {"managedInstances": told}


def zone_told(zone):
    link = f"{LINKS}/projects/{PROJECT}"
    return {
        "kind": "compute#zone", "id": "2290", "name": zone, "description": zone, "status": "UP",
        "region": f"{link}/regions/{ZONES[zone]}", "selfLink": f"{link}/zones/{zone}",
    }  # fmt: skip


def list_zones(call):
    return call.listed([zone_told(zone) for zone in ZONES], "compute#zoneList", "zones")


def get_region(call):
    region = call.params["region"]
    link = f"{LINKS}/projects/{PROJECT}"
    zones = [f"{link}/zones/{zone}" for zone, of in ZONES.items() if of == region]
    told = {"kind": "compute#region", "id": "1210", "name": region, "status": "UP", "zones": zones}
    return {**told, "selfLink": f"{link}/regions/{region}"}


def get_project(_call):
    link = f"{LINKS}/projects/{PROJECT}"
    return {"kind": "compute#project", "id": str(NUMBER), "name": PROJECT, "selfLink": link}
