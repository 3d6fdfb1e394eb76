#!/usr/bin/env python3
"""Whether keystoneauth and openstacksdk read catalogs and clouds.yaml as the driver's tables say: referee.py CATALOG_JSON CLOUDS_JSON

The tables are the driver's own (drivers/openstack/src/cloud/cases). Prints how many cases agree; each that does not is told, and ends this
with 1. A case that the driver refuses on its own account ("wrong"), or answers so ("sdk": false), is nothing to these two.
"""
import io
import json
import os
import sys
import tempfile
import warnings

import requests
from keystoneauth1 import session
from keystoneauth1.access.service_catalog import ServiceCatalogV3
from keystoneauth1.exceptions import EmptyCatalog, EndpointNotFound
from openstack.config import OpenStackConfig

warnings.simplefilter("ignore")
disagreed = []


def agree(case, found, right):
    if found != right:
        disagreed.append(f"{json.dumps(case)}: {json.dumps(found)}, and the table has {json.dumps(right)}")
    return 1


def url(catalog, case):
    try:
        return ServiceCatalogV3(catalog).url_for(service_type=case["type"], interface=case["interface"], region_name=case["region"])
    except (EmptyCatalog, EndpointNotFound):
        return None


class Keystone(requests.adapters.BaseAdapter):
    """Answers each login, and keeps what it was told."""
    def send(self, request, **_):
        answer = requests.Response()
        answer.request, answer.url = request, request.url
        where = request.url.split("/v3")[0] + "/v3"
        told = {"version": {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": where}]}}
        answer.status_code = 200
        if request.method == "POST":
            self.place, self.heard = where, json.loads(request.body)
            answer.status_code, answer.headers["X-Subject-Token"] = 201, "t"
            told = {"token": {"user": {"id": "u", "name": "u", "domain": {"id": "d", "name": "d"}}, "methods": [], "catalog": [],
                              "issued_at": "2026-11-22T14:00:00.000000Z", "expires_at": "2099-11-22T15:00:00.000000Z"}}
        answer.raw = io.BytesIO(json.dumps(told).encode())
        answer.headers["Content-Type"] = "application/json"
        return answer

    def close(self):
        pass


def cloud(case):
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for key, name in (("cloud", "clouds.yaml"), ("secure", "secure.yaml")):
            files.append([os.path.join(folder, name)])
            if key in case:
                with open(files[-1][0], "w") as file:
                    json.dump({"clouds": {"c": case[key]}}, file)
        config = OpenStackConfig(config_files=files[0], secure_files=files[1], vendor_files=[], load_envvars=False)
        region = config.get_one("c", **({"region_name": case["asked"]} if "asked" in case else {}))
    keystone, plain = Keystone(), requests.Session()
    plain.mount("https://", keystone)
    region.get_auth().get_token(session.Session(session=plain))
    interfaces = region.get_interface()
    verify, _ = region.get_requests_verify_args()
    return {"identity": keystone.place, "region": region.region_name or None,
            "interfaces": [one.removesuffix("URL") for one in ([interfaces] if isinstance(interfaces, str) else interfaces)],
            "ca_file": None if verify is True else verify.replace(os.environ["HOME"], "HOME"), "body": keystone.heard}


with open(sys.argv[1]) as file:
    table = json.load(file)
agreed = sum(agree(case, url(table["catalogs"][case["of"]], case), case["url"]) for case in table["cases"])
with open(sys.argv[2]) as file:
    cases = [case for case in json.load(file) if "right" in case and case.get("sdk", True)]
for case in cases:
    try:
        agreed += agree(case, cloud(case), case["right"])
    except Exception as error:
        disagreed.append(f"{json.dumps(case)}: {type(error).__name__}: {error}")
print("\n".join(disagreed) or f"{agreed} agree")
sys.exit(bool(disagreed))
