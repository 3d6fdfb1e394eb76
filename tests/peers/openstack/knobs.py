"""What is to go wrong, and what happened: the two folders and the file through which a test and this cloud speak.

FOLDER/knobs holds JSON files, which count from the moment at which they are there until they are gone:

  server-UUID.json    how the hypervisor treats that server: SECONDS for "power_off_delay", "power_on_delay", "detach_delay",
                      "migrate_delay", and true for "power_off_fail", "power_off_lies" (it says done, and the guest lives on),
                      "power_on_fail", "detach_fail", "migrate_fail". A delay ends when it is taken back
  guest-UUID.json     "switch": a program with its arguments that switches the machine which is that server's guest: it is run with 1 or
                      0 behind them, and has done it when it ends. Without one a server has no guest but in Nova's own word
  host-NAME.json      "frozen": the compute service of that host stands: it takes no message, does nothing, and reports nothing;
                      "down": its reports have been missing for so long that Nova holds it for down
  requests-NAME.json  a list of what is done to requests before a service, see layer.py

FOLDER/journal.jsonl is what happened, a line each, "at" in seconds since 1970: "asked" and "answered" (a request, with the same
"n"), and what the hypervisor did with a server ("effect"): spawn, destroy, power_off, power_on, attach, detach, each when it was
done; with ": begins" before, where something is in the way, and ": fails" or ": lies" instead.
"""
import json
import os
import time


class Knobs:
    def __init__(self, folder):
        self.folder = os.path.join(folder, "knobs")
        self.read = {}

    def _file(self, name):
        """What a file says, and when it was written; it is read again only when it was."""
        place = os.path.join(self.folder, name)
        try:
            stat = os.stat(place)
            written = (stat.st_mtime_ns, stat.st_ino)
            if self.read.get(name, (None,))[0] != written:
                with open(place) as file:
                    self.read[name] = (written, json.load(file))
            return self.read[name]
        except FileNotFoundError:
            return (None, {})

    def server(self, uuid):
        return self._file(f"server-{uuid}.json")[1]

    def guest(self, uuid):
        return self._file(f"guest-{uuid}.json")[1]

    def host(self, name):
        return self._file(f"host-{name}.json")[1]

    def requests(self):
        """All rules, each with a name of its own."""
        try:
            names = sorted(os.listdir(self.folder))
        except FileNotFoundError:
            return
        for name in names:
            if name.startswith("requests-") and name.endswith(".json"):
                written, rules = self._file(name)
                for number, rule in enumerate(rules):
                    yield (name, written, number), rule

    def pass_by(self, uuid, delay):
        """Waits as long as a server's knob says."""
        begun = time.monotonic()
        while time.monotonic() - begun < self.server(uuid).get(delay, 0):
            time.sleep(0.01)

    def until_awake(self, host):
        while self.host(host).get("frozen"):
            time.sleep(0.01)


class Journal:
    def __init__(self, folder):
        # Each line is one write at the end of the file, so that those of several processes do not mix.
        self.file = os.open(os.path.join(folder, "journal.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, what, **more):
        line = {"at": round(time.time(), 6), "what": what, **more}
        os.write(self.file, (json.dumps(line) + "\n").encode())
