#!/usr/bin/env python3
"""Watches the heartbeat of one machine, from outside: reads its disk and nothing else.

usage: observer.py DISK LOG [INTERVAL_MS]

The log has one line for each write seen: COUNTER WRITTEN SEEN BOOT, the last three in nanoseconds. WRITTEN is the
file's time of modification, which the kernel set when the machine wrote (wall clock, as of the kernel's last tick: up to
4 ms too early); SEEN the wall clock and BOOT the boot-time clock just after the reading. The first line says "watching".
It ends when its standard input does, or when it is killed."""

import os
import select
import sys
import time


def counter(fd):
    sector = os.pread(fd, 8, 512)
    return int.from_bytes(sector[4:], "little") if sector[:4] == b"HBT1" else 0


def main():
    disk, log = sys.argv[1], sys.argv[2]
    interval = float(sys.argv[3] if len(sys.argv) > 3 else 2) / 1000
    fd = os.open(disk, os.O_RDONLY)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(out, b"watching\n")
    last = None
    while not select.select([sys.stdin], [], [], interval)[0]:
        now = counter(fd), os.fstat(fd).st_mtime_ns
        if now == last:
            continue
        seen, boot = time.time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        if now[0]:
            os.write(out, b"%d %d %d %d\n" % (*now, seen, boot))
        last = now


if __name__ == "__main__":
    main()
