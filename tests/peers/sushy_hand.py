#!/usr/bin/env python3
"""Somebody else's hand at a machine of sushy-emulator's, by its own state: sushy_hand.py DIRECTORY UUID look|WORD.

"look" prints the truth: what it says of power, with a change whose time has come. Any other word is what it says from now on.
"""
import sys
import time

from sushy_tools.emulator import memoize

directory, uuid, word = sys.argv[1:]
systems = memoize.PersistentDict()
systems.make_permanent(directory, "fakedriver")
system = systems[uuid]
if word == "look":
    pending = system.get("pending_power")
    due = pending and time.time() >= pending["apply_time"]
    print(pending["power_state"] if due else system["power_state"])
else:
    system.update(power_state=word, pending_power=None)
    systems[uuid] = system
