#!/usr/bin/env python3
"""What a Redfish system says of its power, by Python's own HTTP client: redfish_power.py URL CA USER PASSWORD."""
import base64
import json
import ssl
import sys
import urllib.request

url, ca, user, password = sys.argv[1:]
token = base64.b64encode(f"{user}:{password}".encode()).decode()
request = urllib.request.Request(url, headers={"Authorization": f"Basic {token}"})
context = ssl.create_default_context(cafile=ca)
with urllib.request.urlopen(request, context=context, timeout=20) as answer:
    print(json.load(answer)["PowerState"])
