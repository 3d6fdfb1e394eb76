"""The services themselves, each in a process of its own: OpenStack's code, on threads, with RPC in memory."""
import os
import socket
import sys
import threading
import time

from werkzeug.serving import WSGIRequestHandler, make_server

from knobs import Journal, Knobs
from layer import Layer

PORTS = {"identity": 15000, "placement": 15778, "images": 15292, "network": 15696, "volumes": 15776, "compute": 15774}


class Silent(WSGIRequestHandler):
    def log(self, *_args, **_kwargs):
        pass


def serve(app, name, address, layered=True):
    if layered:
        app = Layer(app, name, Knobs("."), Journal("."))
    server = make_server(address, PORTS[name], app, threaded=True, request_handler=Silent)
    threading.Thread(target=server.serve_forever, daemon=True).start()


class OneByOne:
    """Keystone is run with many processes, and with no threads."""

    def __init__(self, app):
        self.app, self.lock = app, threading.Lock()

    def __call__(self, env, start_response):
        with self.lock:
            answer = self.app(env, start_response)
            try:
                return [b"".join(answer)]
            finally:
                if hasattr(answer, "close"):
                    answer.close()


def until_listening(address, *names):
    for name in names:
        while True:
            try:
                socket.create_connection((address, PORTS[name]), 1).close()
                break
            except OSError:
                time.sleep(0.02)


def identity(address, _hosts):
    """Keystone and placement, whose settings do not meet."""
    from keystone.server.flask import core
    keystone = core.initialize_application(name="public", config_files=["etc/keystone.conf"])
    serve(OneByOne(keystone), "identity", address)
    from placement import wsgi
    serve(wsgi.init_application(), "placement", address, layered=False)


def images(address, _hosts):
    from glance.common import wsgi_app
    serve(wsgi_app.init_app(), "images", address, layered=False)


def let_share(driver):
    """Its disks may be of several servers, as those of LVM may; the fake does not say so."""
    update = driver._update_volume_stats

    def updated(self):
        update(self)
        for pool in self._stats["pools"]:
            pool["multiattach"] = True

    driver._update_volume_stats = updated


def volumes(address, _hosts):
    sys.argv = ["cinder", "--config-file", "etc/cinder/cinder.conf"]
    from cinder import monkey_patch
    monkey_patch.patch(backend="threading")
    from cinder.wsgi import wsgi
    app = wsgi.initialize_application()
    from cinder import service
    from cinder.tests import fake_driver
    let_share(fake_driver.FakeLoggingVolumeDriver)
    service.Service.create(binary="cinder-scheduler", host="cinder").start()
    service.Service.create(binary="cinder-volume", host="cinder@disks", service_name="disks", coordination=True).start()
    serve(app, "volumes", address)


def until_offered(manager):
    """A host begins before it has told placement what it has: till then it gets no server."""
    client = manager.reportclient
    while True:
        known = client.get(f"/resource_providers?name={manager.host}").json()["resource_providers"]
        if known and client.get(f"/resource_providers/{known[0]['uuid']}/inventories").json()["inventories"]:
            break
        time.sleep(0.05)


def compute(address, hosts):
    """nova-api, nova-conductor, nova-scheduler, and nova-compute for each host."""
    sys.argv = ["nova", "--config-file", "etc/nova/nova.conf"]
    from nova import monkey_patch
    monkey_patch.patch(backend="threading")
    import hypervisor
    hypervisor.install(Knobs("."), Journal("."))
    import nova.conf
    from nova import context, service
    from nova.api.openstack import wsgi_app
    from nova.compute import rpcapi
    from nova.objects import host_mapping
    from nova.servicegroup import api as servicegroup
    servicegroup.INITIAL_REPORTING_DELAY = 1
    app = wsgi_app.init_application("osapi_compute", "nova-api")
    until_listening(address, "identity", "placement")
    for topic in ("conductor", "scheduler"):
        service.Service.create(binary=f"nova-{topic}", topic=topic, host="control").start()
    computes = []
    for host in hosts:
        # What a hypervisor calls itself is read when its service is made.
        nova.conf.CONF.set_override("host", host)
        computes.append(
            service.Service.create(
                binary="nova-compute", topic=rpcapi.RPC_TOPIC, topic_alt=rpcapi.RPC_TOPIC_ALT, host=host
            )
        )
        computes[-1].start()
    nova.conf.CONF.clear_override("host")
    host_mapping.discover_hosts(context.get_admin_context())
    for one in computes:
        until_offered(one.manager)
    serve(app, "compute", address)


SERVICES = {"identity": identity, "volumes": volumes, "compute": compute, "images": images}


def run(name, address, hosts):
    """Starts a service and returns when it answers; its threads live on."""
    os.environ.update(
        OS_NOVA_CONFIG_DIR=os.path.abspath("etc/nova"), OS_PLACEMENT_CONFIG_DIR="etc", OS_GLANCE_CONFIG_DIR="etc"
    )
    sys.argv = [name]
    SERVICES[name](address, hosts)
