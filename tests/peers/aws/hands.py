"""Somebody else's hands on the EC2 of ec2.py, what became of its instances, and who may come by which credentials."""

import json
import secrets
import time

from moto import settings
from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID as ACCOUNT

REGION = "eu-central-1"

# When instances came into their states, and the tokens by which roles are assumed.
became, tokens = [], {}
patience = {"seconds": 300}


def note(instance, state, late=0.0):
    """It is in that state since so many seconds."""
    became.append({"instance": instance.id, "state": state, "at": time.time() - late})


def ec2():
    return get_backend("ec2")[ACCOUNT][REGION]


def iam():
    return get_backend("iam")[ACCOUNT]["aws"]


def became_of(instance):
    return [entry for entry in became if entry["instance"] == instance]


def root(instance):
    machine = ec2().get_instance(instance)
    mapping = machine.block_device_mapping.get(machine.root_device_name)
    return mapping.volume_id if mapping else None


def blank():
    """A volume that nobody has."""
    return ec2().create_volume(size=1, zone_name=f"{REGION}a").id


def attach(instance, volume, device):
    ec2().attach_volume(volume, instance, device)


def detach(instance, volume, device):
    ec2().detach_volume(volume, instance, device)


def patient(seconds):
    patience["seconds"] = seconds


def role(actions):
    """A role that may do just that, and be assumed by whoever may: its name, and a token for it."""
    name, token = f"picket-{len(tokens)}", secrets.token_hex(16)
    trusts = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "*"}}
    trusts = json.dumps({"Version": "2012-10-17", "Statement": [trusts]})
    made = iam().create_role(name, trusts, "/", None, "", {}, "3600")
    allowed = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
    iam().put_role_policy(name, "policy", json.dumps(allowed))
    tokens[made.arn] = token
    return {"arn": made.arn, "token": token}


def is_vouched(fields):
    """Whether that token is the role's: moto looks at none."""
    return tokens.get(fields.get("RoleArn")) == fields.get("WebIdentityToken")


class Unsigned:
    """Within it moto asks for no signature: who comes by a token has none."""

    def __enter__(self):
        settings.INITIAL_NO_AUTH_ACTION_COUNT = float("inf")

    def __exit__(self, *_):
        settings.INITIAL_NO_AUTH_ACTION_COUNT = 0


VERBS = {"became": became_of, "root": root, "blank": blank, "attach": attach, "detach": detach, "patience": patient, "role": role}
