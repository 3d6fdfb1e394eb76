#!/usr/bin/env python3
"""bridge.py FROM TO [FROM TO ...]: carries connections from one place to another where the two are in networks that do not reach each other.

A place is HOST:PORT, or the path of a socket, which is reached from every network. Says "ready" once it listens everywhere.
"""

import asyncio
import sys


def host_and_port(place):
    host, _, port = place.rpartition(":")
    return host, int(port)


async def connect(place):
    if place.startswith("/"):
        return await asyncio.open_unix_connection(place)
    return await asyncio.open_connection(*host_and_port(place))


async def listen(place, carry):
    if place.startswith("/"):
        return await asyncio.start_unix_server(carry, place)
    return await asyncio.start_server(carry, *host_and_port(place))


async def copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


async def main(places):
    for start, end in zip(places[::2], places[1::2]):

        async def carry(reader, writer, end=end):
            try:
                there, back = await connect(end)
            except OSError:
                writer.close()
                return
            await asyncio.gather(copy(reader, back), copy(there, writer))
            back.close()
            writer.close()

        await listen(start, carry)
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main(sys.argv[1:]))
