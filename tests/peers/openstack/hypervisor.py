"""Nova's own fake hypervisor, with what tests ask of it besides: knobs, guests that run, and a journal of what it did (see knobs.py)."""
import subprocess
import threading
import uuid

from nova.servicegroup.drivers import db as servicegroup
from nova.virt import block_device, fake
from oslo_messaging.rpc import dispatcher

import nova.service

KNOBS, JOURNAL = None, None


def node_id(host):
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{host}.picket.invalid"))


class Watched(fake.FakeDriver):
    def get_nodenames_by_uuid(self, refresh=False):
        return {node_id(name): name for name in self.get_available_nodes()}

    def note(self, what, instance, **more):
        JOURNAL.note("effect", did=what, server=instance.uuid, host=self._host, **more)

    def hindered(self, what, instance, **more):
        """Does to an effect what the server's knobs say; whether it is left out."""
        before = KNOBS.server(instance.uuid)
        if before.get(f"{what}_delay") or KNOBS.host(self._host).get("frozen"):
            self.note(f"{what}: begins", instance, **more)
        KNOBS.pass_by(instance.uuid, f"{what}_delay")
        KNOBS.until_awake(self._host)
        now = KNOBS.server(instance.uuid)
        if now.get(f"{what}_fail"):
            self.note(f"{what}: fails", instance, **more)
            raise RuntimeError(f"the hypervisor could not: {what}")
        if now.get(f"{what}_lies"):
            self.note(f"{what}: lies", instance, **more)
            return True
        return False

    def switch(self, instance, on):
        """The fake one has no guests. Where a test named a machine that is the server's, it is switched in the same call, as an
        emulator's process is started or killed: what Nova says afterwards is so."""
        guest = KNOBS.guest(instance.uuid)
        if guest:
            subprocess.run([*guest["switch"], "1" if on else "0"], check=True, stdin=subprocess.DEVNULL)

    def spawn(self, context, instance, *args, **kwargs):
        super().spawn(context, instance, *args, **kwargs)
        self.note("spawn", instance)

    def destroy(self, context, instance, *args, **kwargs):
        KNOBS.until_awake(self._host)
        self.switch(instance, False)
        super().destroy(context, instance, *args, **kwargs)
        self.note("destroy", instance)

    def power_off(self, instance, timeout=0, retry_interval=0):
        if not self.hindered("power_off", instance):
            self.switch(instance, False)
            super().power_off(instance, timeout, retry_interval)
            self.note("power_off", instance, timeout=timeout)

    def power_on(self, context, instance, *args, **kwargs):
        if not self.hindered("power_on", instance):
            self.switch(instance, True)
            super().power_on(context, instance, *args, **kwargs)
            self.note("power_on", instance)

    def attach_volume(self, context, connection_info, instance, *args, **kwargs):
        super().attach_volume(context, connection_info, instance, *args, **kwargs)
        self.note("attach", instance, volume=volume_of(connection_info))

    def detach_volume(self, context, connection_info, instance, *args, **kwargs):
        volume = volume_of(connection_info)
        if not self.hindered("detach", instance, volume=volume):
            super().detach_volume(context, connection_info, instance, *args, **kwargs)
            self.note("detach", instance, volume=volume)

    def live_migration(self, context, instance, dest, post_method, recover_method, block_migration=False, migrate_data=None):
        try:
            self.hindered("migrate", instance, dest=dest)
        except RuntimeError:
            recover_method(context, instance, dest, migrate_data)
            raise
        self.note("migrate", instance, dest=dest)
        post_method(context, instance, dest, block_migration, migrate_data)

    def post_live_migration(self, context, instance, block_device_info, migrate_data=None):
        self.destroy(context, instance, None, block_device_info)


def volume_of(connection_info):
    return connection_info.get("serial") or connection_info.get("data", {}).get("volume_id")


class ThisHost:
    """Nova's settings, where the hosts share a process: whose volume it is to detach is told by the host's name."""

    def __init__(self, settings):
        self.settings, self.here = settings, threading.local()

    def __getattr__(self, name):
        return getattr(self.here, name, None) or getattr(self.settings, name)


def install(knobs, journal):
    """Makes the driver known to Nova as fake.Watched, and compute services such that they can be frozen."""
    global KNOBS, JOURNAL
    KNOBS, JOURNAL = knobs, journal
    fake.Watched = Watched

    report, is_up = servicegroup.DbDriver._report_state, servicegroup.DbDriver.is_up
    dispatch, periodic = dispatcher.RPCDispatcher.dispatch, nova.service.Service.periodic_tasks

    def report_unless_frozen(self, service):
        if not (service.binary == "nova-compute" and knobs.host(service.host).get("frozen")):
            report(self, service)

    def is_up_unless_down(self, service):
        # An object of Nova's, or a dictionary made of one.
        down = service.get("binary") == "nova-compute" and knobs.host(service.get("host")).get("down")
        return not down and is_up(self, service)

    def dispatch_when_awake(self, incoming):
        for host in {getattr(getattr(endpoint, "driver", None), "_host", None) for endpoint in self.endpoints} - {None}:
            knobs.until_awake(host)
        return dispatch(self, incoming)

    def periodic_unless_frozen(self, *args, **kwargs):
        if self.binary == "nova-compute" and knobs.host(self.host).get("frozen"):
            return 1
        return periodic(self, *args, **kwargs)

    do_detach = block_device.DriverVolumeBlockDevice._do_detach
    block_device.CONF = ThisHost(block_device.CONF)

    def detach_here(self, context, instance, volume_api, virt_driver, *args, **kwargs):
        block_device.CONF.here.host = virt_driver._host
        return do_detach(self, context, instance, volume_api, virt_driver, *args, **kwargs)

    block_device.DriverVolumeBlockDevice._do_detach = detach_here
    servicegroup.DbDriver._report_state = report_unless_frozen
    servicegroup.DbDriver.is_up = is_up_unless_down
    dispatcher.RPCDispatcher.dispatch = dispatch_when_awake
    nova.service.Service.periodic_tasks = periodic_unless_frozen
