"""EC2 as moto has it, with signatures and policies checked, and what moto does not do: states that last, faults, a journal.

    ec2.py ADDRESS PORT

Besides EC2 it answers, to POST with JSON, under /_picket/:

    make     {"count": 2, "volumes": ["/dev/sdf"]}  instances that run, each with such volumes: their ids
    spot     {"kind": "one-time"}     an instance that runs, by a spot request of that kind: its id
    volumes  {"instance": "i-"}       its volumes besides the root: {device: id}
    volume   {"volume": "vol-"}       its state, and at which instances it is attached
    user     {"actions": ["ec2:..."]} a user who may do just that: an access key
    treat    {"instance": "i-", ...}  how it is treated from now on, all of it anew:
                 stopping: seconds before it is stopped; stops: so many stops it takes; word: what its state is called, whatever it is;
                 pending: seconds before it runs; detaching: seconds before a volume is free, unless it goes by force; alive: its guest obeys any stop
    switch   {"instance": "i-", "state": "stopped"}  somebody else's hand, at once
    state    {"instance": "i-"}       the truth: running, stopped, or where it is on its way
    rule     {"action": "StopInstances", "names": "i-", "times": 1, "do": {...}}  what becomes of the next such requests:
                 code, status, message: it is refused so; after: so many seconds it takes; do: "lost" (done, and not answered), "garbled" (done, and
                 answered with what makes no sense), "cut" (done, and half of the answer comes), "unheeded" (answered well,
                 and not done)
    protect  {"instance": "i-", "group": "web"}  DisableApiStop is set, and it is of that auto-scaling group
    silence  {"on": true}             nothing is heard, and nothing answered, until it is taken back
    limits   {"on": true}             requests and stopped instances are counted as AWS documents, with full buckets to begin with
    mend     {"names": "i-"}          no rule and no treatment of it is left
    journal  {"names": "i-"}          what was asked that names it, or all without "names": [{at, action, fields, status}]
    counts   {}                       how many requests for each action came, and how many of them were refused by limits
    became   {"instance": "i-"}       when it came into which state: [{at, state}]
    tags, root {"instance": "i-"}     its tags; its root volume
    blank    {}                       a volume that nobody has: its id
    label    {"volume": "vol-", "tags": {"Name": "x"}}  a volume is tagged so
    attach, detach {"instance": "i-", "volume": "vol-", "device": "/dev/sdf"}  somebody else's hand
    patience {"seconds": 300}         how long it takes a signature
    keep_off {"instance": "i-", "lag": 0}  the shipped policy is in force for it: nobody starts it while Picket's tag is there, nor for
                 so many seconds after that was taken away
    share    {"instance": "i-", "volume": "vol-", "device": "/dev/sdf"}  the volume may have several owners, and this is one more
    goes     {"instance": "i-", "device": "/dev/sdf", "on": true}  whether the volume there is deleted with it
    hibernate {"instance": "i-"}      somebody else hibernates it: it is stopped, and its memory is kept
    role     {"actions": ["ec2:..."]} a role that may do just that: its arn, and the token for it
    serve    {"arn": "arn:..."}       the metadata services give that role's credentials from now on: an instance's, under /latest, in
                 version 2 alone, and ECS's, at /ecs/credentials to who says what ecs_token {} answers
    served   {"path": "/ecs/credentials"}  how often that was asked for

A guest here is dead: it is stopped only by Force and SkipOsShutdown together, else it stays `stopping`.
"""

import contextlib
import copy
import datetime
import io
import json
import sys
import threading
import time
import urllib.parse

import disks
import hands
from moto import settings
from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID as ACCOUNT
from moto.ec2.models.instances import Instance, InstanceBackend
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple

REGION = "eu-central-1"
CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}

lock = threading.RLock()
# Tokens, and how many of them come back a second: requests for an action, and instances in one (EC2 API Reference, throttling).
REQUESTS = {"Describe": (100, 20), "StartInstances": (5, 2), "": (50, 5)}
INSTANCES = {"StopInstances": (1000, 20), "StartInstances": (1000, 2)}

treatments, asked, rules, journal = disks.treatments, disks.asked, [], []
buckets = None
heard = threading.Event()
heard.set()


def ec2():
    return get_backend("ec2")[ACCOUNT][REGION]


def become(instance, state, late=0.0):
    hands.note(instance, state, late)
    instance._state.name, instance._state.code = state, CODES[state]


def treated(instance):
    return treatments.get(instance.id, {})


# States that last.

moto_start, moto_stop, moto_terminate = Instance.start, Instance.stop, Instance.terminate


def stop(self):
    before = copy.copy(self._state)
    if before.name == "stopped":
        return before
    fields = getattr(asked, "fields", {})
    by_force = fields.get("Force") == "true" and fields.get("SkipOsShutdown") == "true"
    by_force = by_force or treated(self).get("alive", False)
    self.stops = getattr(self, "stops", 0) + 1
    moto_stop(self)
    become(self, "stopping")
    enough = by_force and self.stops >= treated(self).get("stops", 1)
    self.then = ("stopped", time.monotonic() + treated(self).get("stopping", 0)) if enough else None
    return before


def start(self):
    from moto.ec2.exceptions import EC2ClientError

    if self._state.name in ("stopping", "shutting-down", "terminated"):
        words = f"The instance '{self.id}' is not in a state from which it can be started."
        raise EC2ClientError("IncorrectInstanceState", words)
    self.stops, before = 0, moto_start(self)
    become(self, "pending")
    self.then = ("running", time.monotonic() + treated(self).get("pending", 0))
    return before


def terminate(self):
    before = copy.copy(self._state)
    # What becomes of its volumes it does as one that is terminated.
    self._state.name, self.then = "terminated", None
    moto_terminate(self)
    become(self, "terminated")
    return before


def settle():
    """What was on its way, and has arrived."""
    for reservation in ec2().reservations.values():
        for instance in reservation.instances:
            then = getattr(instance, "then", None)
            if then and time.monotonic() >= then[1]:
                become(instance, then[0], time.monotonic() - then[1])
                instance.then = None
    disks.settle(ec2())


Instance.start, Instance.stop, Instance.terminate = start, stop, terminate
moto_by_ids = InstanceBackend.get_reservations_by_instance_ids


def by_ids(self, instance_ids, filters=None):
    settle()
    reservations = [copy.copy(reservation) for reservation in moto_by_ids(self, instance_ids, filters)]
    for reservation in reservations:
        reservation.instances = list(reservation.instances)
        for at, instance in enumerate(reservation.instances):
            if "word" in treated(instance):
                # A copy: what it says is not what it is.
                odd = copy.copy(instance)
                odd._state = copy.copy(instance._state)
                odd._state.name = treated(instance)["word"]
                odd._state.code = CODES.get(odd._state.name, 0)
                reservation.instances[at] = odd
    return reservations


InstanceBackend.get_reservations_by_instance_ids = by_ids


# What tests ask.


def make(count, volumes=()):
    how = {"tags": {}, "instance_type": "m5.large", "is_instance_type_default": False}
    made = ec2().run_instances("ami-12c6146b", count, None, [], **how).instances
    for instance in made:
        for device in volumes:
            volume = ec2().create_volume(size=1, zone_name=f"{REGION}a")
            ec2().attach_volume(volume.id, instance.id, device)
    return [instance.id for instance in made]


def user(actions):
    iam = get_backend("iam")[ACCOUNT]["aws"]
    name = f"picket-{len(iam.users)}"
    iam.create_user(REGION, name, "/")
    document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
    iam.put_user_policy(name, "policy", json.dumps(document))
    key = iam.create_access_key(name)
    return {"id": key.access_key_id, "secret": key.secret_access_key}


def volumes(instance):
    machine = ec2().get_instance(instance)
    mapped = machine.block_device_mapping.items()
    return {device: mapping.volume_id for device, mapping in mapped if device != machine.root_device_name}


def volume(volume):
    settle()
    known = ec2().get_volume(volume)
    return {"state": known.status, "at": [attachment.instance.id for attachment in known.attachments]}


def state(instance):
    settle()
    return ec2().get_instance(instance)._state.name


def switch(instance, state):
    machine = ec2().get_instance(instance)
    machine.then, machine.stops = None, 0
    become(machine, state)


def treat(instance, **how):
    treatments[instance] = how


def treat_all(instances, **how):
    treatments.update({instance: how for instance in instances})


def tags(instance):
    return {tag["key"]: tag["value"] for tag in ec2().describe_tags({"resource-id": [instance]})}


def mend(names):
    treatments.pop(names, None)
    rules[:] = [rule for rule in rules if rule["names"] != names]


def protect(instance, group):
    machine = ec2().get_instance(instance)
    machine.disable_api_stop = True
    machine.add_tags({"aws:autoscaling:groupName": group})


def silence(on):
    heard.clear() if on else heard.set()


def limits(on):
    global buckets
    buckets = {} if on else None


def is_too_much(action, fields):
    """Whether a bucket has too few tokens for it; else it takes them."""
    if buckets is None:
        return False
    rate = next(rate for prefix, rate in REQUESTS.items() if action.startswith(prefix))
    takes = [(action, rate, 1)]
    if action in INSTANCES:
        takes.append((f"{action} of instances", INSTANCES[action], sum(key.startswith("InstanceId.") for key in fields)))
    now = time.monotonic()
    left = {}
    for name, (most, refill), tokens in takes:
        had, at = buckets.get(name, (most, now))
        left[name] = min(most, had + (now - at) * refill) - tokens
    if any(tokens < 0 for tokens in left.values()):
        return True
    buckets.update({name: (tokens, now) for name, tokens in left.items()})
    return False


def asked_of(names=None):
    return [entry for entry in journal if names is None or names in entry["fields"].values()]


def counts():
    told = {}
    for entry in journal:
        came = told.setdefault(entry["action"], [0, 0])
        came[0] += 1
        came[1] += entry.get("limited", False)
    return told


VERBS = {
    "make": make, "user": user, "volumes": volumes, "volume": volume, "state": state, "switch": switch, "treat": treat, "treat_all": treat_all,
    "tags": tags, "silence": silence, "protect": protect, "mend": mend, "journal": asked_of, "counts": counts, "limits": limits,
    "rule": lambda **rule: rules.append(rule), **hands.VERBS,
}  # fmt: skip


# What comes from outside.


def error(code, message, status):
    text = f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors><RequestID>r</RequestID></Response>"
    return status, text.encode()


def is_over(environ):
    """Whether the time of its signature is (Signature Version 4: five minutes, unless a test says otherwise)."""
    if "HTTP_AUTHORIZATION" not in environ:
        return False
    try:
        signed = datetime.datetime.strptime(environ.get("HTTP_X_AMZ_DATE", ""), "%Y%m%dT%H%M%SZ")
    except ValueError:
        return True
    signed = signed.replace(tzinfo=datetime.timezone.utc)
    return abs((datetime.datetime.now(datetime.timezone.utc) - signed).total_seconds()) > hands.patience["seconds"]


def rule_for(action, fields):
    for rule in rules:
        if rule["action"] in (action, "*") and rule["names"] in fields.values() and rule["times"] > 0:
            rule["times"] -= 1
            return rule["do"]
    return {}


def whole(begin, status, kind, text, more=()):
    begin(status, [("Content-Type", kind), ("Content-Length", str(len(text))), *more])
    return [text]


def half(text, socket):
    """Half of it, and no more."""
    yield text[: len(text) // 2]
    socket.shutdown(2)


class Front:
    def __init__(self, moto, itself):
        self.moto, self.itself = moto, itself

    def performed(self, environ, body, fields):
        """What moto answers."""
        told = []
        environ = {**environ, "wsgi.input": io.BytesIO(body)}
        unsigned = fields.get("Action") == "AssumeRoleWithWebIdentity"
        if unsigned and not hands.is_vouched(fields):
            return error("InvalidIdentityToken", "No OpenIDConnect provider knows that token.", 400)
        with lock, hands.Unsigned() if unsigned else contextlib.nullcontext():
            asked.fields = fields
            text = b"".join(self.moto(environ, lambda status, headers, *_: told.append((status, headers))))
        return int(told[0][0].split()[0]), text

    def answer(self, environ, body):
        fields = dict(urllib.parse.parse_qsl(body.decode("latin1"), keep_blank_values=True))
        action = fields.get("Action", "")
        entry = {"at": time.time(), "action": action, "fields": fields, "status": 0}
        with lock:
            settle()
            journal.append(entry)
            do = rule_for(action, fields)
            entry["limited"] = is_too_much(action, fields)
        time.sleep(do.get("after", 0))
        if entry["limited"]:
            answer = error("RequestLimitExceeded", "Request limit exceeded.", 503)
        elif "code" in do:
            answer = error(do["code"], do.get("message", "No."), do.get("status", 400))
        elif is_over(environ):
            answer = error("RequestExpired", "Request has expired.", 400)
        elif denied := hands.kept_off(action, fields):
            answer = error("UnauthorizedOperation", denied, 403)
        elif do.get("do") == "unheeded":
            answer = 200, f"<{action}Response><return>true</return></{action}Response>".encode()
        else:
            answer = self.performed(environ, body, fields)
        if do.get("do") == "lost":
            return None
        if do.get("do") == "garbled":
            answer = 200, b"<html>hello</html>"
        entry["status"] = answer[0]
        return (*answer, do.get("do") == "cut")

    def __call__(self, environ, begin):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        path = environ.get("PATH_INFO", "")
        if path.startswith("/_picket/"):
            with lock:
                told = VERBS[path.rsplit("/", 1)[1]](**json.loads(body or b"{}"))
            return whole(begin, "200 OK", "application/json", json.dumps(told).encode())
        if path.startswith(("/latest/", hands.ECS)):
            # The metadata service of an instance that runs, to whom this is a proxy: fence_aws asks who it is itself.
            with lock:
                status, text, more = hands.metadata(environ["REQUEST_METHOD"], path, environ, self.itself)
            return whole(begin, f"{status} X", "text/plain", text.encode(), more)
        deaf = not heard.is_set()
        answer = None if heard.wait() and deaf else self.answer(environ, body)
        if answer is None:
            environ["werkzeug.socket"].shutdown(2)
            return []
        status, text, is_cut = answer
        told = whole(begin, f"{status} X", "text/xml;charset=UTF-8", text)
        return half(text, environ["werkzeug.socket"]) if is_cut else told


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, *_):
        pass


if __name__ == "__main__":
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    front = Front(DomainDispatcherApplication(create_backend_app), make(1)[0])
    print("ready", flush=True)
    run_simple(sys.argv[1], int(sys.argv[2]), front, threaded=True, request_handler=Quiet)
