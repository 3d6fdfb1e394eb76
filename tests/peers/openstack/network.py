"""Stands in for Neutron: no more of it than Nova asks for where servers have no network."""
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

UNLIMITED = {"port": -1, "network": -1, "security_group": -1, "floatingip": -1}


class Nothing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        pass

    def say(self, status, told):
        body = b"" if told is None else json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path = self.path.split("?")[0].strip("/")
        if path == "":
            here = f"http://{self.headers['Host']}/v2.0/"
            return self.say(200, {"versions": [{"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": here}]}]})
        if path == "v2.0":
            return self.say(200, {"resources": []})
        if path.startswith("v2.0/quotas"):
            return self.say(200, {"quota": UNLIMITED})
        return self.say(200, {path.split("/")[-1].replace("-", "_"): []})

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.say(201, {})

    do_PUT = do_POST

    def do_DELETE(self):
        self.send_response(204)
        self.end_headers()


def server(address, port):
    return ThreadingHTTPServer((address, port), Nothing)
