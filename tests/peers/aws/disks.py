"""Volumes of the EC2 of ec2.py: with several owners (io2, multi-attach), and detaches that last. moto knows one owner, and no time."""

import threading
import time

from moto.ec2.exceptions import InvalidVolumeAttachmentError, InvalidVolumeDetachmentError, VolumeInUseError
from moto.ec2.models.elastic_block_store import EBSBackend, Volume

# How instances are treated, and the request that is being answered (ec2.py).
treatments, asked = {}, threading.local()
moto_attach, moto_describe = EBSBackend.attach_volume, EBSBackend.describe_volumes


def owners(volume):
    """Its attachments: moto's own code sets one, and reads one."""
    return volume.__dict__.setdefault("owners", [])


def owned(volume, attachment):
    if attachment is not None:
        owners(volume).append(attachment)


Volume.attachments = property(lambda volume: list(owners(volume)))
Volume.attachment = property(lambda volume: next(iter(owners(volume)), None), owned)


def attach(self, volume_id, instance_id, device_path, delete_on_termination=False):
    volume = self.get_volume(volume_id)
    if volume.attachment and not volume.multi_attach_enabled:
        raise VolumeInUseError(volume_id, volume.attachment.instance.id)
    return moto_attach(self, volume_id, instance_id, device_path, delete_on_termination)


def detach(self, volume_id, instance_id, device_path):
    volume, instance = self.get_volume(volume_id), self.get_instance(instance_id)
    attachment = next((one for one in volume.attachments if one.instance is instance), None)
    if attachment is None:
        raise InvalidVolumeAttachmentError(volume_id, instance_id)
    if attachment.device != (device_path or attachment.device):
        raise InvalidVolumeDetachmentError(volume_id, instance_id, device_path)
    seconds = treatments.get(instance_id, {}).get("detaching", 0)
    by_force = getattr(asked, "fields", {}).get("Force") == "true"
    if seconds and not by_force and instance._state.name != "terminated":
        attachment.status, attachment.leaves = "detaching", time.monotonic() + seconds
    else:
        let_go(volume, attachment)
    return attachment


def let_go(volume, attachment):
    attachment.status = "detached"
    owners(volume).remove(attachment)
    attachment.instance.block_device_mapping.pop(attachment.device, None)


def settle(backend):
    """What was on its way, and has left."""
    for volume in list(backend.volumes.values()):
        for attachment in volume.attachments:
            if time.monotonic() >= getattr(attachment, "leaves", float("inf")):
                let_go(volume, attachment)


def describe(self, volume_ids=None, filters=None):
    """moto compares what a filter asks for with all owners together."""
    filters = dict(filters or {})
    asked = filters.pop("attachment.instance-id", None)
    found = moto_describe(self, volume_ids, filters)
    return [one for one in found if asked is None or any(at.instance.id in asked for at in one.attachments)]


EBSBackend.attach_volume, EBSBackend.detach_volume, EBSBackend.describe_volumes = attach, detach, describe
