#!/usr/bin/env python3
"""Notes who asked a BMC something, from outside: each datagram to a port, as the network brings it.

usage: calls.py INTERFACE FIRST_PORT LAST_PORT LOG

A line each: NANOSECONDS SOURCE PORT, by the wall clock. The first line says "listening". It ends when its standard input does."""

import os
import select
import socket
import sys
import time

ETH_P_IP = 0x0800


def main():
    interface, first, last, log = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
    packets.bind((interface, ETH_P_IP))
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(out, b"listening\n")
    while True:
        ready = select.select([packets, sys.stdin], [], [])[0]
        if sys.stdin in ready:
            return
        packet, (_, _, kind, _, _) = packets.recvfrom(64)
        header = (packet[0] & 15) * 4
        # Of others to us, UDP (17) only.
        if kind != socket.PACKET_HOST or packet[9] != 17 or len(packet) < header + 4:
            continue
        port = int.from_bytes(packet[header + 2 : header + 4], "big")
        if first <= port <= last:
            source = socket.inet_ntoa(packet[12:16])
            os.write(out, b"%d %s %d\n" % (time.time_ns(), source.encode(), port))


if __name__ == "__main__":
    main()
