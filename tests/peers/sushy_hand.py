#!/usr/bin/env python3
"""Somebody else's hand at the machines of sushy-emulator, by its own state: sushy_hand.py DIRECTORY, then lines of UUID look|WORD.

Each line is answered by one. "look" says the truth: what the machine says of power, with a change whose time has come. Any other word
is what it says from now on, and is said back.
"""
import sys
import time

from sushy_tools.emulator import memoize

systems = memoize.PersistentDict()
systems.make_permanent(sys.argv[1], "fakedriver")
for line in sys.stdin:
    uuid, word = line.split()
    system = systems[uuid]
    if word == "look":
        pending = system.get("pending_power")
        due = pending and time.time() >= pending["apply_time"]
        word = pending["power_state"] if due else system["power_state"]
    else:
        system.update(power_state=word, pending_power=None)
        systems[uuid] = system
    print(word, flush=True)
