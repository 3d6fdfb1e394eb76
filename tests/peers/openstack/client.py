#!/usr/bin/env python3
"""Somebody else's client of a cloud, on openstacksdk: client.py ADDRESS

Reads requests from its standard input, a JSON document a line, {"id": N, "as": WHO, "do": WHAT, ...}, answers each with
{"id": N, "ok": ...} or {"id": N, "error": TEXT} as soon as it knows, and ends with its input. WHO is "admin", "tenant", "owner" (who
is admin, in the tenant's project) or {"id": ..., "secret": ...}, an application credential. WHAT is the name of a function below.
"""
import datetime
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import openstack
import requests

# Nothing is written among the sources.
sys.dont_write_bytecode = True
from services import PORTS

USERS = {"admin": ("admin", "admin-secret", "admin"), "owner": ("admin", "admin-secret", "tenant"),
         "tenant": ("tenant", "tenant-secret", "tenant")}
AUTH = f"http://{sys.argv[1]}:{PORTS['identity']}/v3"
connections, lock, saying = {}, threading.Lock(), threading.Lock()


def connection(who):
    with lock:
        key = json.dumps(who)
        if key not in connections:
            if isinstance(who, dict):
                login = dict(auth_type="v3applicationcredential", application_credential_id=who["id"],
                             application_credential_secret=who["secret"])
            else:
                user, password, project = USERS[who]
                login = dict(username=user, password=password, project_name=project, user_domain_id="default",
                             project_domain_id="default")
            connections[key] = openstack.connect(auth_url=AUTH, region_name="RegionOne", **login)
        return connections[key]


def rest(cloud, service, method, path, body=None, version=None):
    """Any request, as it is: {"status", "headers", "body"}."""
    adapter = {"compute": cloud.compute, "volumes": cloud.block_storage, "identity": cloud.identity}[service]
    answer = adapter.request(path, method, json=body, microversion=version, raise_exc=False, connect_retries=0)
    try:
        told = answer.json()
    except ValueError:
        told = answer.text or None
    return {"status": answer.status_code, "headers": dict(answer.headers), "body": told}


def create_server(cloud, name, host=None, boot_volume=None):
    """A server that runs, and its id."""
    where = {"host": host} if host else {}
    what = {"image_id": cloud.image.find_image("system").id}
    if boot_volume:
        what = {"block_device_mapping": [{"uuid": boot_volume, "source_type": "volume", "destination_type": "volume",
                                          "boot_index": 0, "delete_on_termination": False}]}
    flavor = cloud.compute.find_flavor("small").id
    for again in (True, True, False):
        server = cloud.compute.create_server(name=name, flavor_id=flavor, networks="none", **what, **where)
        try:
            return cloud.compute.wait_for_server(server, interval=0.1, wait=120).id
        except openstack.exceptions.ResourceFailure as error:
            fault = cloud.compute.get_server(server.id).fault
            # Nova gives up where too many others of the host were placed at the same moment.
            if not again or "No valid host" not in str(fault):
                raise RuntimeError(f"{error}: {fault}") from error
            cloud.compute.delete_server(server)


def create_servers(cloud, count, at_once=20):
    """So many servers that run, and their ids."""
    image, flavor = cloud.image.find_image("system").id, cloud.compute.find_flavor("small").id
    made = []
    while len(made) < count:
        # More at once have placement's generations conflict.
        some, name = min(at_once, count - len(made)), f"many-{time.time_ns()}"
        cloud.compute.create_server(name=name, flavor_id=flavor, image_id=image, networks="none", min_count=some, max_count=some)
        for server in list(cloud.compute.servers(name=name, details=False)):
            made.append(cloud.compute.wait_for_server(cloud.compute.get_server(server.id), interval=0.5, wait=600).id)
    return made


def allow_shared(cloud):
    """From now on there is a type of volumes that several servers may have at once: `shared`."""
    if not cloud.block_storage.find_type("shared"):
        cloud.block_storage.create_type(name="shared", extra_specs={"multiattach": "<is> True"})


def create_volume(cloud, name, bootable=False, kind=None):
    """A volume that can be attached, and its id."""
    volume = cloud.block_storage.create_volume(name=name, size=1, **({"volume_type": kind} if kind else {}))
    volume = cloud.block_storage.wait_for_status(volume, "available", interval=0.1, wait=120)
    if bootable:
        cloud.block_storage.set_volume_bootable_status(volume, True)
    return volume.id


def attach(cloud, server, volume):
    """Begins to attach; `volume` shows when it is done."""
    # From 2.60 on also what several servers may have.
    path, body = f"/servers/{server}/os-volume_attachments", {"volumeAttachment": {"volumeId": volume}}
    told = cloud.compute.post(path, json=body, microversion="2.60")
    openstack.exceptions.raise_from_response(told)
    return told.json()


def detach(cloud, server, volume):
    return cloud.compute.delete_volume_attachment(server, volume)


def server(cloud, server):
    """What Nova says of a server, with its newest words."""
    return cloud.compute.get(f"/servers/{server}", microversion="2.96").json().get("server")


def volume(cloud, volume):
    return cloud.block_storage.get_volume(volume).to_dict()


def start(cloud, server):
    cloud.compute.start_server(server)


def stop(cloud, server):
    cloud.compute.stop_server(server)


def lock_server(cloud, server):
    cloud.compute.lock_server(server)


def unlock_server(cloud, server):
    cloud.compute.unlock_server(server)


def actions(cloud, server):
    """What was done to a server, with the events of each, as Nova lists them."""
    listed = cloud.compute.get(f"/servers/{server}/os-instance-actions", microversion="2.84").json()["instanceActions"]
    path = f"/servers/{server}/os-instance-actions"
    return [cloud.compute.get(f"{path}/{one['request_id']}", microversion="2.84").json()["instanceAction"] for one in listed]


def until_refused(cloud):
    """Asks Nova with one token, again and again, until it is refused: how many seconds after the token's end that was."""
    body = {"auth": {"identity": {"methods": ["password"], "password": {"user": {
        "name": "tenant", "password": "tenant-secret", "domain": {"id": "default"}}}},
        "scope": {"project": {"name": "tenant", "domain": {"id": "default"}}}}}
    made = requests.post(f"{AUTH}/auth/tokens", json=body)
    end = datetime.datetime.fromisoformat(made.json()["token"]["expires_at"].replace("Z", "+00:00"))
    servers = cloud.compute.get_endpoint() + "/servers"
    while requests.get(servers, headers={"X-Auth-Token": made.headers["X-Subject-Token"]}).status_code == 200:
        time.sleep(0.05)
    return (datetime.datetime.now(datetime.timezone.utc) - end).total_seconds()


def application_credential(cloud, name, rules=None, ends_in=None):
    """A new one, {"id", "secret"}; with access rules [{"service", "method", "path"}] for what they say alone; for so many seconds."""
    user, more = cloud.current_user_id, {"access_rules": rules} if rules else {}
    if ends_in:
        end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=ends_in)
        more["expires_at"] = end.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    made = cloud.identity.create_application_credential(user, name, **more)
    return {"id": made.id, "secret": made.secret}


DO = {name: one for name, one in globals().items() if callable(one) and getattr(one, "__module__", None) == "__main__"}


def answer(line):
    asked = json.loads(line)
    number, who, what = asked.pop("id"), asked.pop("as"), asked.pop("do")
    try:
        told = {"id": number, "ok": DO[what](connection(who), **asked)}
    except Exception as error:
        told = {"id": number, "error": f"{what}: {type(error).__name__}: {error}"}
    with saying:
        print(json.dumps(told, default=str), flush=True)


with ThreadPoolExecutor(max_workers=16) as pool:
    for line in sys.stdin:
        pool.submit(answer, line)
