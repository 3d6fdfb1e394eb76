#!/usr/bin/env python3
"""A whole OpenStack in one folder: Keystone, Nova, Cinder, Glance and placement, as released. No Neutron (network.py), and below
Nova its own fake hypervisor (hypervisor.py).

  cloud.py prepare TEMPLATE                         makes databases, users, flavors and an image, once
  cloud.py run TEMPLATE FOLDER ADDRESS [--token-life SECONDS] [--hosts NAME,NAME] [--services NAME,NAME] [--many]

`run` copies TEMPLATE to FOLDER, listens on ADDRESS, says "ready" when everything answers, and ends when its standard input does.
`serve FOLDER ADDRESS` is the same without the copy.
What is to go wrong, and what happened, stands in FOLDER: see knobs.py and layer.py.
"""
import argparse
import ctypes
import gc
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Nothing is written among the sources.
sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
VENV = Path(sys.prefix)
# The host in a template's endpoints, instead of which a cloud has its own address.
NOWHERE = "openstack.invalid"
# Where a template is filled: nobody else's meanwhile.
SEEDING = "127.93.{}.{}".format(*divmod(os.getpid() % 64_000 + 1, 254))
ALL = ["identity", "compute", "volumes", "images"]
PR_SET_PDEATHSIG = 1
# What several services import: read once, and shared by all that are forked.
SHARED = """cryptography.hazmat.primitives.ciphers jsonschema keystoneauth1.loading keystoneauth1.session keystonemiddleware.auth_token
lxml.etree oslo_concurrency.processutils oslo_config.cfg oslo_context.context oslo_db.sqlalchemy.enginefacade oslo_db.sqlalchemy.utils
oslo_log.log oslo_messaging oslo_middleware oslo_policy.policy oslo_reports.guru_meditation_report oslo_utils.timeutils
oslo_versionedobjects.base osprofiler.web paste.deploy requests routes sqlalchemy.orm stevedore webob.dec werkzeug.serving""".split()


# What goes through all servers of a host again and again, or hands them all to the scheduler each time: a thousand are too many for two processors.
FOR_MANY = """
[DEFAULT]
update_resources_interval = -1
heal_instance_info_cache_interval = -1
shelved_poll_interval = -1
[filter_scheduler]
track_instance_changes = false
"""


def write_settings(folder, address, token_life):
    """The services' settings, out of those in etc/."""
    words = {"@ADDRESS@": address, "@FOLDER@": str(folder.absolute()), "@VENV@": str(VENV), "@TOKEN_LIFE@": str(token_life)}
    login = (HERE / "etc/login.conf").read_text()
    for source in (HERE / "etc").rglob("*.conf"):
        text = source.read_text()
        # How a service makes itself known to Keystone is the same for all.
        for user in ("nova", "cinder", "glance", "placement", "neutron"):
            text = text.replace(f"@LOGIN {user}@", login.replace("@USER@", user))
        for word, value in words.items():
            text = text.replace(word, value)
        place = folder / "etc" / source.relative_to(HERE / "etc")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    for name in ("nova/api-paste.ini", "cinder/api-paste.ini", "cinder/resource_filters.json"):
        shutil.copy(VENV / "etc" / name, folder / "etc" / name)
    for name in ("log", "knobs", "nova", "cinder", "images", "lock"):
        (folder / name).mkdir(exist_ok=True)


def prepare(template):
    # Under another name until it is whole.
    folder = template.with_name(template.name + ".new")
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("db", "fernet", "credential"):
        (folder / name).mkdir(parents=True)
    write_settings(folder, "127.0.0.1", 3600)

    def manage(program, settings, *lines):
        for line in lines:
            words = [sys.executable, VENV / "bin" / program, "--config-file", settings, *line.split()]
            done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode != 0:
                raise SystemExit(f"{program} {line} failed:\n{done.stdout}")

    def identity():
        from services import PORTS
        me = f"--keystone-user {os.getuid()} --keystone-group {os.getgid()}"
        url = f"http://{NOWHERE}:{PORTS['identity']}/v3"
        urls = " ".join(f"--bootstrap-{kind}-url {url}" for kind in ("public", "internal", "admin"))
        manage("keystone-manage", "etc/keystone.conf", "db_sync", f"fernet_setup {me}", f"credential_setup {me}",
               f"bootstrap --bootstrap-password admin-secret --bootstrap-region-id RegionOne {urls}")
        manage("placement-manage", "etc/placement.conf", "db sync")

    def disks():
        manage("glance-manage", "etc/glance-api.conf", "db_sync")
        manage("cinder-manage", "etc/cinder/cinder.conf", "db sync")

    def machines():
        manage("nova-manage", "etc/nova/nova.conf", "api_db sync",
               "cell_v2 map_cell0 --database_connection sqlite:///db/nova_cell0.db", "db sync",
               "cell_v2 create_cell --name cell1 --transport-url fake:/// --database_connection sqlite:///db/nova_cell1.db")

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(part) for part in (identity, disks, machines)]:
            done.result()
    for database in (folder / "db").glob("*.db"):
        sqlite3.connect(database).execute("PRAGMA journal_mode = wal").close()
    # Endpoints first: by them the other services find one another.
    import seed
    for names, fill in ((["identity"], seed.people), (ALL, seed.things)):
        serving = [sys.executable, HERE / "cloud.py", "serve", folder, SEEDING, "--hosts", "", "--services", ",".join(names)]
        with subprocess.Popen(serving, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cloud:
            if cloud.stdout.readline() != "ready\n":
                raise SystemExit(f"a prepared cloud did not begin: see {folder}/log")
            fill(seed.connect(SEEDING), NOWHERE)
            cloud.stdin.close()
        move(folder, SEEDING, NOWHERE)
    shutil.rmtree(template, ignore_errors=True)
    for name in ("etc", "log", "knobs", "nova", "cinder", "lock"):
        shutil.rmtree(folder / name)
    folder.rename(template)


def move(folder, before, after):
    """Endpoints say where a cloud is."""
    database = sqlite3.connect(folder / "db/keystone.db")
    database.execute("UPDATE endpoint SET url = replace(url, ?, ?)", (f"//{before}:", f"//{after}:"))
    database.commit()
    database.close()


def run(folder, address, hosts, names):
    """Forks the services, in which nothing runs yet."""
    os.chdir(folder)
    # All run on threads. What finds eventlet while it is imported takes it, and Nova refuses to begin where it is loaded.
    sys.modules["eventlet"] = None
    import oslo_service.backend
    oslo_service.backend.init_backend(oslo_service.backend.BackendType.THREADING)
    for name in SHARED:
        __import__(name)
    del sys.modules["eventlet"]
    import sqlite
    sqlite.install()
    import network
    import services
    gc.freeze()
    reading, writing = os.pipe()
    parent, children = os.getpid(), {}
    for name in names:
        child = os.fork()
        if child == 0:
            become(name, parent, writing, lambda: services.run(name, address, hosts))
        children[child] = name
    os.close(writing)
    threading.Thread(target=network.server(address, services.PORTS["network"]).serve_forever, daemon=True).start()

    def end(*_):
        for child in children:
            os.kill(child, signal.SIGKILL)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    ready = os.fdopen(reading).read().split()
    if sorted(ready) != sorted(names):
        print(f"only {ready} of {list(names)} began: see {folder}/log", flush=True)
        for child in children:
            os.kill(child, signal.SIGKILL)
        raise SystemExit(1)
    print("ready", flush=True)
    while os.read(0, 4096):
        pass
    end()


def become(name, parent, ready, begin):
    """What a forked process does: it begins, says so, and lives as long as its parent."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    log = os.open(f"log/{name}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    status = 1
    try:
        begin()
        os.write(ready, f"{name}\n".encode())
        os.close(ready)
        threading.Event().wait()
    except BaseException:
        import traceback
        traceback.print_exc()
    finally:
        os._exit(status)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("prepare").add_argument("template", type=Path)
    for verb in ("run", "serve"):
        running = verbs.add_parser(verb)
        if verb == "run":
            running.add_argument("template", type=Path)
        running.add_argument("folder", type=Path)
        running.add_argument("address")
        running.add_argument("--token-life", type=int, default=3600)
        running.add_argument("--hosts", default="host-a,host-b")
        running.add_argument("--services", default=",".join(ALL))
        running.add_argument("--many", action="store_true")
    said = parser.parse_args()
    if said.verb == "prepare":
        return prepare(said.template.absolute())
    if said.verb == "run":
        shutil.copytree(said.template, said.folder, dirs_exist_ok=True)
    write_settings(said.folder, said.address, said.token_life)
    if said.many:
        with open(said.folder / "etc/nova/nova.conf", "a") as settings:
            settings.write(FOR_MANY)
    move(said.folder, NOWHERE, said.address)
    hosts = [host for host in said.hosts.split(",") if host]
    return run(said.folder.absolute(), said.address, hosts, said.services.split(","))


if __name__ == "__main__":
    # What is deprecated in OpenStack is not ours to hear of.
    os.environ["PYTHONWARNINGS"] = "ignore"
    os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "yes"
    os.environ["OS_CINDER_DISABLE_EVENTLET_PATCHING"] = "yes"
    import warnings
    warnings.simplefilter("ignore")
    main()
