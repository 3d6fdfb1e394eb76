#!/usr/bin/env python3
"""Judges a run from outside: reads what observers saw on disks and what peers noted, and nothing of Picket's own.

usage: judge.py RELEASES ASKED NODE=BEATS:POWER...

RELEASES is the journal of the receiver (receiver_journal.py), ASKED what the caller asked for, each line written before it
asked: {"at": NANOSECONDS, "what": "unfence", "node": NAME}; BEATS an observer's log (observer.py), POWER the log of the
machine's power control (vmctl.sh). Prints one JSON document:

  violations  a line of text each:
    - a heartbeat that was written after the volumes were let go, or after the confirmation on whose strength they were, and
      before anybody asked for the node back
    - a machine that was switched on after such a confirmation, and before anybody asked for it back
    - the volumes let go of a machine that was switched on since it last fell
  releases    how often volumes were let go; refused: how often the receiver refused; repeated: asked for again
  beats       how many heartbeats were seen
  margin_ms   for each release, how long before it the last heartbeat was written

Only what the receiver did counts as a release: a request that it refused, or answered as it had before, let nothing go."""

import datetime
import json
import sys

# The kernel stamps a write with the time of its last tick: it is up to so much later than its stamp.
TICK = 4_000_000


def lines(path):
    try:
        with open(path) as file:
            text = file.read()
    except FileNotFoundError:
        return []
    # The last line may be half written.
    return text[: text.rfind("\n") + 1].splitlines()


def nanoseconds(rfc3339):
    moment = datetime.datetime.fromisoformat(rfc3339.replace("Z", "+00:00"))
    whole = moment.replace(microsecond=0)
    return int(whole.timestamp()) * 10**9 + moment.microsecond * 1000


def heartbeats(path):
    words = (line.split(" ") for line in lines(path))
    return [(int(count), int(written), int(seen)) for count, written, seen, _ in (w for w in words if len(w) == 4)]


def switched(path):
    """What was done to the machine, as (when, on or off). Seconds with six decimals: no floating point."""
    done = []
    for line in lines(path):
        at, _, what = line.partition(" ")
        seconds, _, micros = at.replace(",", ".").partition(".")
        if what in ("on", "off"):
            done.append((int(seconds) * 10**9 + int(micros.ljust(6, "0")) * 1000, what))
    return done


class Node:
    """One node: what must not be between a release of it and the next time that somebody asks for it back."""

    def __init__(self, name, beats, power, asked):
        self.name = name
        self.beats = heartbeats(beats)
        self.power = switched(power)
        self.back = sorted(one["at"] for one in asked if one["node"] == name and one["what"] == "unfence")

    def until(self, moment):
        """When, after this moment, somebody asked for it back first."""
        return min((back for back in self.back if back > moment), default=float("inf"))

    def faults(self, release):
        at, confirmed = release["at"], nanoseconds(release["evidence"]["confirmed_at"])
        if confirmed > at + 10**6:
            yield "%s: let go %d ms before the confirmation" % (self.name, (confirmed - at) // 10**6)
        for what, moment in (("confirmation", confirmed), ("release", at)):
            end = self.until(moment)
            for count, written, seen in self.beats:
                if written + TICK > moment and seen > moment and seen < end:
                    late = (written - moment) / 10**6
                    yield "%s: heartbeat %d was written %.1f ms after the %s" % (self.name, count, late, what)
            for when, how in self.power:
                if how == "on" and moment < when < end:
                    late = (when - moment) / 10**6
                    yield "%s: switched on %.1f ms after the %s, and nobody unfenced it" % (self.name, late, what)
        before = [how for when, how in self.power if when <= at]
        if before and before[-1] == "on":
            yield "%s: its volumes were let go, and its power control last switched it on" % self.name

    def margin(self, release):
        written = [written for _, written, _ in self.beats if written < release["at"]]
        return (release["at"] - max(written)) // 10**6 if written else None


def main():
    journal = [json.loads(line) for line in lines(sys.argv[1])]
    asked = [json.loads(line) for line in lines(sys.argv[2])]
    nodes = {}
    for argument in sys.argv[3:]:
        name, _, logs = argument.partition("=")
        beats, _, power = logs.partition(":")
        nodes[name] = Node(name, beats, power, asked)
    releases = [one for one in journal if one["let_go"]]
    violations = [fault for one in releases for fault in nodes[one["node"]].faults(one)]
    result = {
        "violations": violations,
        "releases": len(releases),
        "refused": sum(one["status"] >= 400 for one in journal),
        "repeated": sum(one["status"] < 400 and not one["let_go"] for one in journal),
        "beats": sum(len(node.beats) for node in nodes.values()),
        "margin_ms": [nodes[one["node"]].margin(one) for one in releases],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
