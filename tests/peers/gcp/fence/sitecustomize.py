"""Directs fence_gce, as Debian has it and untouched, to the Compute Engine of the tests: on PYTHONPATH, with PICKET_GCE naming its address.

The agent knows no setting for the endpoint (FENCE_GCE_URI_REPLACEMENTS takes addresses of googleapis.com alone). It asks Google's
discovery service where Compute Engine is: that question is asked of the peer instead, which serves the same document with its own
address, and all others follow it. The metadata server, of which it asks the name of its image, is the peer too.
"""

import os
import socket

import httplib2

DISCOVERY = "https://www.googleapis.com/discovery/"
PEER = os.environ["PICKET_GCE"]

request, connect = httplib2.Http.request, socket.create_connection


def redirected(self, uri, *rest, **more):
    if uri.startswith(DISCOVERY):
        uri = f"http://{PEER}/discovery/" + uri[len(DISCOVERY) :]
    return request(self, uri, *rest, **more)


def connected(address, *rest, **more):
    if address == ("metadata.google.internal", 80):
        host, port = PEER.rsplit(":", 1)
        address = (host, int(port))
    return connect(address, *rest, **more)


httplib2.Http.request, socket.create_connection = redirected, connected
