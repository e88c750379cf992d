#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A router in front of prefill and decode engines, as vllm-router and sglang_router are for the tests.

It listens once all engines answer /health. A request first goes to a prefill engine for one token, then to a decode engine,
whose answer passes as it comes. Each goes to the engine of its role with the fewest in flight.
"""
import argparse
import asyncio
import json
import sys
from urllib.parse import urlsplit


class Engine:
    def __init__(self, url: str) -> None:
        self.host, self.port = urlsplit(url).hostname, urlsplit(url).port
        self.in_flight = 0

    async def ask(self, method: str, path: str, body: bytes = b""):
        """Sends a request; its answer is read from what this returns, to its end."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        writer.write(f"{method} {path} HTTP/1.1\r\nhost: engine\r\nconnection: close\r\n"
                     f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        return reader, writer

    async def whole(self, method: str, path: str, body: bytes = b"") -> bytes:
        reader, writer = await self.ask(method, path, body)
        try:
            return await reader.read()
        finally:
            writer.close()


def answer(status, text):
    return f"HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {len(text)}\r\n\r\n{text}".encode()


def is_good(head):
    return head.startswith(b"HTTP/1.1 200")


def idlest(engines):
    return min(engines, key=lambda one: one.in_flight)


async def complete(path, body, prefills, decodes, client):
    prefill = idlest(prefills)
    first = json.loads(body) | {"max_tokens": 1, "stream": False}
    for field in ("max_completion_tokens", "stream_options", "min_tokens"):
        first.pop(field, None)
    prefill.in_flight += 1
    try:
        computed = await prefill.whole("POST", path, json.dumps(first).encode())
    except OSError as error:
        return client.write(answer("500 Internal Server Error", f"Prefill request failed: {error}"))
    finally:
        prefill.in_flight -= 1
    if not is_good(computed):
        return client.write(answer("500 Internal Server Error", "Prefill server error: " + computed.decode()))
    decode = idlest(decodes)  # now: before, none had anything in flight yet
    decode.in_flight += 1
    passed = 0
    try:
        reader, writer = await decode.ask("POST", path, body)
        while piece := await reader.read(1 << 16):
            passed += len(piece)
            client.write(piece)
            await client.drain()
        writer.close()
    except OSError as error:
        if passed == 0:  # else the connection ends in the middle of the answer
            client.write(answer("500 Internal Server Error", f"Decode request failed: {error}"))
    finally:
        decode.in_flight -= 1


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--vllm-pd-disaggregation", "--pd-disaggregation", action="store_true", required=True)
    parser.add_argument("--prefill", nargs="+", action="append", required=True)  # sglang_router's has a port too
    parser.add_argument("--decode", action="append", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int)
    parser.add_argument("--prometheus-port")
    options = parser.parse_args()
    prefill, decode = [Engine(words[0]) for words in options.prefill], [Engine(url) for url in options.decode]

    async def serve(reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, path, _ = head[0].split()
            length = next((int(line.split(":")[1]) for line in head if line.lower().startswith("content-length:")), 0)
            if any(line.lower() == "expect: 100-continue" for line in head):
                client.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = await reader.readexactly(length)
            if method == "POST":
                await complete(path, body, prefill, decode, client)
            elif path == "/health":
                client.write(answer("200 OK", "OK"))
            elif path in ("/v1/models", "/get_server_info"):
                client.write(await prefill[0].whole(method, path))
            else:
                client.write(answer("404 Not Found", ""))
            await client.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has left
        finally:
            client.close()

    for engine in prefill + decode:
        while True:
            try:
                if is_good(await engine.whole("GET", "/health")):
                    break
            except OSError:
                pass
            await asyncio.sleep(0.1)
    server = await asyncio.start_server(serve, options.host, options.port, limit=1 << 28)
    print(f"router: listening on http://{options.host}:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
