"""image.py PROGRAM NAME OUT: an image of one static program and nothing else, as `docker save` would write it.

No registry is asked for it, and the same program gives the same bytes."""

import hashlib
import io
import json
import platform
import sys
import tarfile

program, name, out = sys.argv[1:]


def tar(to, files):
    with tarfile.open(fileobj=to, mode="w") as archive:
        for path, content in files:
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))


layer = io.BytesIO()
with open(program, "rb") as executable:
    tar(layer, [("app", executable.read())])
layer = layer.getvalue()
digest = hashlib.sha256(layer).hexdigest()
config = json.dumps({
    "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine()),
    "os": "linux",
    "config": {"Entrypoint": ["/app"]},
    "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
}).encode()
config_name = f"{hashlib.sha256(config).hexdigest()}.json"
manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": [f"{digest}.tar"]}]).encode()
with open(out, "wb") as image:
    tar(image, [(config_name, config), (f"{digest}.tar", layer), ("manifest.json", manifest)])
