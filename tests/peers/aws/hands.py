"""Somebody else's hands on the EC2 of ec2.py, what became of its instances, and who may come by which credentials."""

import json
import secrets
import time

from moto import settings
from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID as ACCOUNT
from moto.ec2.models.instances import StateReason

REGION = "eu-central-1"

# The metadata services, and the role that they give.
ECS, ROLES = "/ecs/credentials", "/latest/meta-data/iam/security-credentials/"
TOKEN, ECS_TOKEN = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
served, asked = {}, {}

# When instances came into their states, and the tokens by which roles are assumed.
became, tokens = [], {}
patience = {"seconds": 300}


def note(instance, state, late=0.0):
    """It is in that state since so many seconds."""
    became.append({"instance": instance.id, "state": state, "at": time.time() - late})


# Of whom the policy that keeps off holds: for how long after its tag is gone, and when that was there last.
kept, tagged = {}, {}
TAG = ("picket-fenced", "picket")


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


def label(volume, tags):
    ec2().create_tags([volume], tags)


def attach(instance, volume, device):
    ec2().attach_volume(volume, instance, device)


def detach(instance, volume, device):
    ec2().detach_volume(volume, instance, device)


def share(instance, volume, device):
    ec2().get_volume(volume).multi_attach_enabled = True
    attach(instance, volume, device)


def goes(instance, device, on):
    ec2().get_instance(instance).block_device_mapping[device].delete_on_termination = on


def hibernate(instance):
    machine = ec2().get_instance(instance)
    machine.hibernation_options, machine.then = {"Configured": True}, None
    machine._state.name, machine._state.code = "stopped", 80
    machine.state_reason = StateReason("Client.UserInitiatedHibernate: User initiated hibernate", "Client.UserInitiatedHibernate")
    note(machine, "stopped")


def spot(kind):
    """An instance by a spot request of that kind. By which one it was launched no instance of moto says, and every instance of EC2."""
    left = ("price", "valid_from", "valid_until", "launch_group", "availability_zone_group", "key_name", "security_groups", "user_data")
    left += ("placement", "kernel_id", "ramdisk_id", "monitoring_enabled", "subnet_id")
    what = {"image_id": "ami-12c6146b", "count": 1, "spot_instance_type": kind, "instance_type": "m5.large"}
    [request] = ec2().request_spot_instances(**dict.fromkeys(left), **what)
    request.instance.spot_instance_request_id = request.id
    return request.instance.id


def keep_off(instance, lag):
    kept[instance] = lag


def kept_off(action, fields):
    """deploy/aws/keep-off.json: why that may not be done, or None. IAM sees late that a tag is gone."""
    for instance in [instance for key, instance in fields.items() if key.startswith(("InstanceId", "ResourceId"))]:
        if instance not in kept:
            continue
        is_tagged = ec2().tags.get(instance, {}).get(TAG[0]) == TAG[1]
        if is_tagged:
            tagged[instance] = time.monotonic()
        lags = time.monotonic() - tagged.get(instance, float("-inf")) < kept[instance]
        if action == "StartInstances" and (is_tagged or lags):
            arn = f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{instance}"
            return f"User is not authorized to perform: ec2:StartInstances on resource: {arn} with an explicit deny in an identity-based policy"
    return None


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


def serve(arn):
    """Who asks the metadata services is that role from now on."""
    served["arn"] = arn


def credentials():
    """Of the role that is served, for an hour; what ECS and an instance's metadata service both say."""
    made = get_backend("sts")[ACCOUNT]["aws"].assume_role(REGION, "served", served["arn"], None, 3600, None)
    expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    keys = {"AccessKeyId": made.access_key_id, "SecretAccessKey": made.secret_access_key, "Token": made.session_token}
    return {**keys, "Expiration": expires, "Code": "Success", "Type": "AWS-HMAC"}


def metadata(method, path, headers, itself):
    """An instance's metadata service, version 2 alone, and ECS's: status, text, and further headers."""
    asked[path] = asked.get(path, 0) + 1
    if path == ECS:
        is_told = headers.get("HTTP_AUTHORIZATION") == ECS_TOKEN
        return (200, json.dumps(credentials()), []) if is_told else (401, "who asks?", [])
    if path == "/latest/api/token":
        seconds = headers.get("HTTP_X_AWS_EC2_METADATA_TOKEN_TTL_SECONDS")
        if method != "PUT" or seconds is None:
            return 400, "", []
        return 200, TOKEN, [("X-aws-ec2-metadata-token-ttl-seconds", seconds)]
    if headers.get("HTTP_X_AWS_EC2_METADATA_TOKEN") != TOKEN:
        return 401, "", []
    data = {"/latest/meta-data/instance-id": lambda: itself, "/latest/meta-data/placement/region": lambda: REGION}
    if served:
        data[ROLES], data[f"{ROLES}served"] = lambda: "served", lambda: json.dumps(credentials())
    return (200, data[path](), []) if path in data else (404, "", [])


def is_vouched(fields):
    """Whether that token is the role's: moto looks at none."""
    return tokens.get(fields.get("RoleArn")) == fields.get("WebIdentityToken")


class Unsigned:
    """Within it moto asks for no signature: who comes by a token has none."""

    def __enter__(self):
        settings.INITIAL_NO_AUTH_ACTION_COUNT = float("inf")

    def __exit__(self, *_):
        settings.INITIAL_NO_AUTH_ACTION_COUNT = 0


VERBS = {
    "became": became_of, "root": root, "blank": blank, "attach": attach, "detach": detach, "patience": patient, "role": role, "share": share, "label": label,
    "goes": goes, "hibernate": hibernate, "spot": spot, "keep_off": keep_off, "serve": serve, "ecs_token": lambda: ECS_TOKEN, "served": lambda path: asked.get(path, 0),
}  # fmt: skip
