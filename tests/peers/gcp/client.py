"""Google's own clients of Compute Engine, told what to do: the answers of each step, one line of JSON each.

    client.py ENDPOINT CREDENTIALS.json STEPS.json

A step is `["stop", {"zone": ..., "instance": ..., "no_graceful_shutdown": true}]`: a method of `compute_v1.InstancesClient` with the
fields of its request; "disk", "operation" and "wait" are of the clients of disks and of operations. What
takes its time is waited for, by `zoneOperations.wait`. Where there are no credentials ("-") the machine's own are taken, which the
metadata server tells. `reports` asks with google-api-python-client, which is another client, with the document that the endpoint
itself serves.
"""

import json
import sys

import google.auth
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import GoogleAPICallError
from google.auth import identity_pool
from google.auth.exceptions import GoogleAuthError
from google.cloud import compute_v1
from google.oauth2 import service_account

PROJECT = "picket-tests"
CLOUD = ["https://www.googleapis.com/auth/cloud-platform"]


def credentials_of(place):
    if place == "-":
        return google.auth.default(scopes=CLOUD)[0]
    with open(place) as file:
        told = json.load(file)
    kind = identity_pool.Credentials if told["type"] == "external_account" else service_account.Credentials
    make = kind.from_info if kind is identity_pool.Credentials else kind.from_service_account_info
    return make(told, scopes=CLOUD)


class Clients:
    def __init__(self, endpoint, credentials):
        credentials = credentials_of(credentials)
        more = {"credentials": credentials, "client_options": ClientOptions(api_endpoint=endpoint)}
        self.endpoint, self.credentials = endpoint, credentials
        self.instances, self.disks = compute_v1.InstancesClient(**more), compute_v1.DisksClient(**more)
        self.operations = compute_v1.ZoneOperationsClient(**more)

    def step(self, what, fields):
        fields = {"project": PROJECT, **fields}
        if what == "reports":
            return self.reports(fields)
        if what == "list":
            return [self.told(one) for one in self.instances.list(request=compute_v1.ListInstancesRequest(fields))]
        if what == "aggregated_list":
            pages = self.instances.aggregated_list(request=compute_v1.AggregatedListInstancesRequest(fields))
            return {scope: [self.told(one) for one in scoped.instances] for scope, scoped in pages if scoped.instances}
        if what == "disk":
            disk = self.disks.get(request=compute_v1.GetDiskRequest(fields))
            return {"name": disk.name, "users": list(disk.users)}
        if what == "operation":
            return self.operated(self.operations.get(request=compute_v1.GetZoneOperationRequest(fields)))
        if what == "wait":
            return self.operated(self.operations.wait(request=compute_v1.WaitZoneOperationRequest(fields)))
        if what == "get":
            return self.told(self.instances.get(request=fields))
        # The one that waits by itself asks an address of its own.
        begun = getattr(self.instances, f"{what}_unary")(request=fields)
        while begun.status != compute_v1.Operation.Status.DONE:
            begun = self.operations.wait(project=PROJECT, zone=fields["zone"], operation=begun.name)
        return self.operated(begun)

    def told(self, one):
        devices = [disk.device_name for disk in one.disks]
        return {"id": str(one.id), "name": one.name, "status": one.status, "devices": devices, "labels": dict(one.labels)}

    def operated(self, one):
        status = compute_v1.Operation.Status(one.status).name if isinstance(one.status, int) else str(one.status)
        errors = [error.code for error in one.error.errors]
        return {"name": one.name, "type": one.operation_type, "status": status, "target": str(one.target_id), "errors": errors}

    def reports(self, fields):
        import googleapiclient.discovery

        place = f"{self.endpoint}/discovery/v1/apis/{{api}}/{{apiVersion}}/rest"
        more = {"discoveryServiceUrl": place, "credentials": self.credentials, "cache_discovery": False, "static_discovery": False}
        compute = googleapiclient.discovery.build("compute", "v1", **more)
        told = compute.instances().get(project=PROJECT, zone=fields["zone"], instance=fields["instance"]).execute()
        return {"id": told["id"], "status": told["status"]}


def main(endpoint, credentials, steps):
    clients = None
    for what, fields in json.loads(steps):
        try:
            clients = clients or Clients(endpoint, credentials)
            told = {"ok": clients.step(what, fields)}
        except GoogleAPICallError as error:
            reasons = [one.get("reason") for one in error.errors if isinstance(one, dict)]
            told = {"error": error.message, "code": error.code, "reasons": reasons}
        except GoogleAuthError as error:
            told = {"error": str(error), "code": 0, "reasons": ["auth"]}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
