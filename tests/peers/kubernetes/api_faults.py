"""Stands before an API server and does to what is asked what a file says: passes it on, refuses it, dawdles, or calls every watch expired.

Arguments: HOST:PORT to listen at, its certificate, its key, HOST:PORT of the API server, who vouches for that, and the file:
{"do": "pass"} | {"do": "refuse", "status": 429} | {"do": "dawdle", "seconds": 15} | {"do": "expire"}
What is open is cut when the file changes."""

import asyncio
import json
import ssl
import sys

listen, certificate, key, upstream, authority, orders = sys.argv[1:]
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
server.load_cert_chain(certificate, key)
client = ssl.create_default_context(cafile=authority)
open_now = set()


def place(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def order():
    with open(orders, encoding="utf-8") as file:
        return file.read()


def status(code):
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests" if code == 429 else "InternalError",
            "message": "this request is refused by a test", "code": code}
    text = json.dumps(body).encode()
    head = f"HTTP/1.1 {code} No\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
    return head.encode() + text


def expired():
    gone = {"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired",
                                        "message": "too old resource version", "code": 410}}
    text = json.dumps(gone).encode() + b"\n"
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + text


async def pipe(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


async def serve(reader, writer):
    open_now.add(asyncio.current_task())
    far = None
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, rest = head.split(b"\r\n", 1)
        now = json.loads(order())
        if now["do"] == "refuse":
            writer.write(status(now["status"]))
        elif now["do"] == "expire" and b"watch=true" in first:
            writer.write(expired())
        else:
            if now["do"] == "dawdle":
                await asyncio.sleep(now["seconds"])
            host, port = place(upstream)
            there, far = await asyncio.open_connection(host, port, ssl=client)
            # One request a connection: the next one is looked at anew.
            lines = [line for line in rest.split(b"\r\n") if not line.lower().startswith(b"connection:")]
            far.write(b"\r\n".join([first, b"Connection: close", *lines]))
            up = asyncio.ensure_future(pipe(reader, far))
            try:
                await pipe(there, writer)
            finally:
                up.cancel()
        await writer.drain()
    except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError, asyncio.CancelledError):
        pass
    finally:
        open_now.discard(asyncio.current_task())
        for one in filter(None, [writer, far]):
            one.close()


async def main():
    known = order()
    host, port = place(listen)
    await asyncio.start_server(serve, host, port, ssl=server)
    print("listening", flush=True)
    while True:
        await asyncio.sleep(0.05)
        if order() != known:
            known = order()
            for task in list(open_now):
                task.cancel()


asyncio.run(main())
