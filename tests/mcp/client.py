# SPDX-License-Identifier: Apache-2.0
"""The official Python client tunes simengine through `autotune mcp`, from nothing but words.

usage: client.py AUTOTUNE SIMENGINE
"""

import asyncio
import json
import os
import pathlib
import socket
import sys
import tempfile

from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

TOOLS = {"init", "validate", "suggest", "start", "status", "propose", "stop", "explain", "report", "recommend", "audit", "bench", "compare"}


async def called(client, tool, **arguments):
    progress = []

    async def heard(done, total, message):
        progress.append((done, message))

    result = await client.call_tool(tool, arguments, progress_callback=heard)
    told = json.loads(result.content[0].text)
    assert told == result.structured_content, tool
    assert bool(result.is_error) == (told["state"] == "failed"), told
    assert told["next"], told
    assert len(result.content[0].text) < 8000, f"{tool}: {len(result.content[0].text)} characters"
    print(tool, arguments, "->", told["state"], told.get("headline") or told.get("reason", "")[:100], f"{len(progress)} notes")
    return told


async def ended(client, told):
    """What a job comes to."""
    for _ in range(20):
        if told["state"] != "working":
            break
        told = await called(client, "status", job=told["job"], wait_seconds=30)
    return told


async def study_of(client, folder):
    told = await called(
        client, "init", output="night.yaml", engine="vllm", model="Qwen/Qwen3-8B", hardware="h100-sxm", gpus=1,
        traffic="64x16", concurrency=16, goal="throughput", budget="6 trials",
    )
    assert told["state"] == "done", told
    told = await called(client, "validate", study="night.yaml")
    assert told["valid"] and told["size"] > 1, told
    told = await called(client, "start", study="night.yaml", wait_seconds=1)
    assert told["state"] == "working", told
    told = await called(client, "stop", job=told["job"])
    assert told["state"] == "done", told
    told = await called(client, "propose", study="night.yaml", configuration={"max_num_seqs": 512})
    assert told["proposed"] == 1 and "accept_changes" in told["next"], told
    told = await called(client, "propose", study="night.yaml", configuration={"max_num_seqs": 513})
    assert told["state"] == "failed" and "513" in told["reason"], told
    told = await called(client, "start", study="night.yaml")
    assert told["state"] == "failed" and "accept" in told["reason"], told
    told = await called(client, "start", study="night.yaml", accept_changes=True)
    told = await ended(client, told)
    assert told["state"] == "done" and told["trials"]["told"] >= 6, told
    report = await called(client, "report", study="night")
    assert report["verdict"] in ("recommended", "keep_default", "inconclusive"), report
    assert report["recommended"]["command"].startswith("vllm serve Qwen/Qwen3-8B"), report
    told = await called(client, "status", study="night.yaml")
    assert told["verdict"] == report["verdict"] and told["running"] is False, told
    told = await called(client, "status")
    assert [(one["study"], one["verdict"]) for one in told["studies"]] == [("night", report["verdict"])], told
    assert told["files"] == ["night.yaml"], told
    told = await called(client, "explain", study="night.yaml", trial=1)
    assert told["why"], told
    told = await called(client, "recommend", study="night.yaml")
    assert "exec vllm serve" in told["text"], told


async def other_tools(client, folder):
    told = await called(client, "suggest", model="Qwen/Qwen3-8B", hardware="h100-sxm", engine="vllm")
    assert told["command"].startswith("vllm serve"), told
    (folder / "result.json").write_text(json.dumps({
        "date": "20260101-000000", "backend": "vllm", "model_id": "Qwen/Qwen3-8B", "num_prompts": 100, "request_rate": "inf",
        "max_concurrency": 8, "duration": 10.0, "completed": 100, "total_input_tokens": 10000, "total_output_tokens": 10000,
        "request_throughput": 10.0, "output_throughput": 1000.0, "total_token_throughput": 3000.0,
        "mean_ttft_ms": 50.0, "median_ttft_ms": 50.0, "p99_ttft_ms": 60.0, "mean_tpot_ms": 7.0, "median_tpot_ms": 7.0, "p99_tpot_ms": 8.0,
        "mean_itl_ms": 7.0, "median_itl_ms": 7.0, "p99_itl_ms": 8.0,
    }))
    (folder / "pods").mkdir()
    told = await called(client, "init", output="pods/chat.yaml", engine="vllm", model="Qwen/Qwen3-8B", **{"as": "kubernetes"})
    assert told["state"] == "done" and (folder / "pods" / "pod.yaml").exists() and (folder / "pods" / "servetune.yaml").exists(), told
    told = await called(client, "audit", files=["result.json"])
    assert "unsound" in json.dumps(told), told  # 20 000 tokens in 10 s are 2000/s
    told = await called(client, "compare", a="night.yaml", settings={"max_num_seqs": 512}, pairs=3, wait_seconds=50)
    told = await ended(client, told)
    assert told["verdict"] and told["text"], told  # not on a busy machine
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    engine = await asyncio.create_subprocess_exec("vllm", "serve", "Qwen/Qwen3-8B", "--port", str(port), stdout=asyncio.subprocess.DEVNULL)
    try:
        for _ in range(100):
            told = await called(client, "bench", url=f"http://127.0.0.1:{port}", workload="random:64x16", requests=20, concurrency=4,
                                wait_seconds=30)
            if told["state"] == "done":
                break
            await asyncio.sleep(0.2)
        assert told["completed"] == 20, told
    finally:
        engine.terminate()
        await engine.wait()


async def attacks(client, folder, outside):
    (outside / "secret.yaml").write_text("study: stolen\n")
    (folder / "link.yaml").symlink_to(outside / "secret.yaml")
    (folder / "away").symlink_to(outside)
    (folder / "out.yaml").write_text("use: night.yaml\nengine: away/secret.yaml\n")
    elsewhere, remote, line = "is not in the folder of this server", "a server of this machine", "one line of text wanted"
    for tool, arguments, wanted in [
        ("validate", {"study": "/etc/passwd"}, elsewhere), ("validate", {"study": "../../../etc/passwd"}, elsewhere),
        ("explain", {"study": "out.yaml"}, "there is no file"), ("validate", {"study": "link.yaml"}, elsewhere), ("validate", {"study": "away/secret.yaml"}, elsewhere),
        ("validate", {"study": "--help"}, "does not begin with '-'"), ("validate", {"study": "a\nb.yaml"}, line),
        ("validate", {"study": 7}, line), ("validate", {}, "`study` is missing"),
        ("validate", {"study": "night.yaml", "strategy": "random"}, "takes no `strategy`"),
        ("init", {"output": str(outside / "new.yaml")}, elsewhere), ("init", {"output": "away/new.yaml"}, elsewhere),
        ("init", {"output": "x.yaml", "model": "m\nevaluator: {command: [sh, -c, 'touch owned']}"}, line),
        ("init", {"output": "y.yaml", "attach": "http://169.254.169.254/latest"}, remote),
        ("bench", {"url": "http://example.com"}, remote), ("bench", {"url": "http://127.0.0.1@example.com/"}, remote),
        ("bench", {"url": "http://localhost.example.com"}, remote), ("bench", {"url": "file:///etc/passwd"}, remote),
        ("bench", {"url": "http://127.0.0.1:1", "workload": "/etc/passwd"}, elsewhere),
        ("start", {"study": "night.yaml", "directory": str(outside)}, elsewhere),
        ("start", {"study": "night.yaml", "trials": -1}, "a whole number of at least 0"),
        ("audit", {"files": ["night.yaml", "/etc/shadow"]}, elsewhere), ("audit", {"files": []}, "a list of files"),
        ("suggest", {"model": "/etc/passwd", "hardware": "h100-sxm", "engine": "vllm"}, elsewhere),
        ("recommend", {"study": "night.yaml", "as": "shell --output=/tmp/x"}, "--as"),
        ("init", {"output": "w.yaml", "as": "ssh"}, "--as"),
        ("recommend", {"study": "night.yaml", "output": str(outside)}, "takes no `output`"),
        ("propose", {"study": "night.yaml", "configuration": {"--output": "x"}}, "names wanted"),
        ("propose", {"study": "night.yaml", "configuration": {"max_num_seqs": "512; touch owned"}}, "is outside its domain"),
        ("stop", {"job": "1"}, "gave wanted"), ("status", {"job": "../x"}, "what `start`, `bench` or `compare` gave"),
    ]:
        told = await called(client, tool, **arguments)
        assert told["state"] == "failed" and wanted in told["reason"], (tool, arguments, told)
        assert "stolen" not in json.dumps(told) and "root:" not in json.dumps(told), told
    # A model that looks like YAML stays a name.
    told = await called(client, "init", output="z.yaml", engine="vllm", model="m: {evaluator: {command: [sh]}} # x", hardware="h100-sxm", gpus=1,
                        traffic="64x32", concurrency=8, goal="throughput", budget="2 trials")
    if told["state"] == "done":
        assert "command:" not in [line.split()[0] for line in (folder / "z.yaml").read_text().splitlines() if line.split()], told
        told = await called(client, "validate", study="z.yaml")
        assert "evaluator" in told.get("default_command", "evaluator"), told
    assert sorted(one.name for one in outside.iterdir()) == ["secret.yaml"]
    assert not list(folder.rglob("owned")) and not list(pathlib.Path(".").glob("owned"))


def processes_of(folder):
    """Those with the folder in their environment, but this one."""
    found = []
    for one in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (one / "environ").read_bytes() and int(one.name) != os.getpid():
                found.append((one / "cmdline").read_bytes())
        except OSError:
            pass
    return found


async def comes_true(what, seconds=60):
    for _ in range(seconds * 10):
        if what():
            return True
        await asyncio.sleep(0.1)
    return False


async def killed_server(autotune, folder, environment):
    """A run ends with the server also when that is killed, and goes on later."""
    (folder / "long.yaml").write_text((folder / "night.yaml").read_text().replace("study: night", "study: long").replace("6", "60"))
    server = await asyncio.create_subprocess_exec(
        autotune, "mcp", "--directory", str(folder), env=environment, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )

    async def asked(id, method, wait=True, **parameters):
        line = {"jsonrpc": "2.0", "method": method, "params": parameters} | ({"id": id} if id else {})
        server.stdin.write(json.dumps(line).encode() + b"\n")
        return json.loads(await server.stdout.readline()) if id and wait else None

    await asked(1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "test", "version": "1"})
    await asked(0, "notifications/initialized")
    told = await asked(2, "tools/call", name="start", arguments={"study": "long.yaml"})
    assert told["result"]["structuredContent"]["state"] == "working", told
    assert await comes_true(lambda: any(b"serve" in one for one in processes_of(folder)))
    for id in range(4, 204):
        await asked(id, "tools/call", 0, name="status", arguments={"study": "long.yaml"})
    await asked(3, "ping", 0)
    [json.loads(await server.stdout.readline())["id"] for _ in range(50)].index(3)
    assert sum(b"validate" in p for p in processes_of(folder)) <= 4
    server.kill()
    await server.wait()
    assert await comes_true(lambda: not processes_of(folder)), processes_of(folder)


async def use(autotune, simengine, folder, outside):
    (folder / "bin").mkdir()
    script = f'#!/bin/sh\nexec "{simengine}" --start-scale 1000 vllm "$@"\n'
    (folder / "bin" / "vllm").write_text(script)
    (folder / "bin" / "vllm").chmod(0o755)
    os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "HF_TOKEN": "hf_neverseenbyanyagent", "XDG_CACHE_HOME": str(folder / "cache")}
    parameters = StdioServerParameters(command=autotune, args=["mcp", "--directory", str(folder)], env=environment)
    async with Client(stdio_client(parameters)) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == TOOLS, [tool.name for tool in tools]
        schema = next(tool for tool in tools if tool.name == "start").input_schema
        assert schema["required"] == ["study"] and schema["properties"]["trials"]["type"] == "integer", schema
        await study_of(client, folder)
        await other_tools(client, folder)
        await attacks(client, folder, outside)
        (folder / "secret.yaml").write_text("study: s\nmodel: ${HF_TOKEN}\nengine: vllm\nobjective: {maximize: x}\n")
        assert "neverseenbyanyagent" not in json.dumps(await called(client, "validate", study="secret.yaml"))
        (folder / "secret.yaml").unlink()
    assert await comes_true(lambda: not processes_of(folder)), processes_of(folder)
    await killed_server(autotune, folder, environment)
    everything = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    assert b"hf_neverseenbyanyagent" not in everything
    print("done")


with tempfile.TemporaryDirectory(prefix="mcp-") as folder, tempfile.TemporaryDirectory() as outside:
    asyncio.run(use(*sys.argv[1:], pathlib.Path(folder), pathlib.Path(outside)))
