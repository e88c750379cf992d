# SPDX-License-Identifier: Apache-2.0
"""Logs of others as JSON Lines."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from servetune.traffic import FORMATS, Requests, main

head = "\x1b[0;36m(APIServer pid=7)\x1b[0;0m INFO 11-28 09:53:46 [request_logger.py:63] "
finish = (
    "[2026-11-28 09:53:50] Finish: obj=GenerateReqInput(rid='r1', session_id='s', text='it is \\'out={\\' here',"
    " input_ids=None, sampling_params={'max_new_tokens': 8}), out={'text': \"'prompt_tokens': 9\", 'meta_info':"
    " {'id': 'r1', 'finish_reason': {'type': 'length', 'length': 8}, 'prompt_tokens': 120, 'completion_tokens': 8,"
    " 'cached_tokens': 64, 'e2e_latency': 1.5}}"
)
finished = (
    '{"timestamp": "2026-11-28T09:53:50.500000", "event": "request.finished", "rid": "r1", "obj": {"session_id": "s",'
    ' "text": "abc"}, "out": {"text": "x", "meta_info": {"finish_reason": {"type": "stop"}, "prompt_tokens": 120,'
    ' "completion_tokens": 8, "e2e_latency": 1.5}}}'
)
payload = (
    '{"id": "a", "call_type": "acompletion", "cache_hit": null, "status": "success", "prompt_tokens": 40,'
    ' "completion_tokens": 7, "startTime": 1795859626.5, "messages": [{"role": "user", "content": "hello"}]}'
)
table = 'request_id,startTime,prompt_tokens,completion_tokens,status,messages\nb,2026-11-28 09:53:46.500,40,7,success,"x, y"'
access = (
    '10.0.0.1 - - [28/Nov/2026:10:53:50 +0100] "POST /v1/chat/completions HTTP/1.1" 200 2500 "-" "python 3.1 0.999"'
    " rt=1.500 request_length=1500 ct=text/event-stream"
)


def rows(form: str, text: str) -> tuple[list[dict[str, Any]], dict[str, int]]:
    requests = Requests(FORMATS[form])
    return list(requests.read(text.splitlines())), {why: count for why, count in requests.counts.items() if count}


@pytest.mark.parametrize(
    ("form", "text", "time", "input", "output"),
    [
        ("vllm", head + "Received request c-1: params: SamplingParams(stop=['prompt: ']), lora_request: None.\n"
         + head + "Request c-1 details: prompt: 'a', prompt_token_ids: [5, 6, 7, 8], prompt_embeds shape: None.\n"
         + head + "Added request c-1.\n"
         + head + "Generated response c-1 (streaming delta) details: output_token_ids: [1, 2]\n"
         + head + "Generated response c-1 (streaming delta) details: output_token_ids: [3]\n"
         + head + "Generated response c-1 (streaming complete): output: 'x', finish_reason: streaming_complete\n",
         None, 4, 3),
        ("vllm", head + "Received request c-2: prompt: 'x', params: P(a=1), prompt_token_ids: [1, 2, 3], lora: None\n"
         + head + "Generated response c-2: output: '<streaming_complete: 41 tokens>', finish_reason: x\n", None, 3, 41),
        ("sglang", finish, 1795859628.5, 120, 8),
        ("sglang", "[2026-11-28 09:53:50] " + finished, 1795859629, 120, 8),
        ("litellm", payload, 1795859626.5, 40, 7),
        ("litellm", table, 1795859626.5, 40, 7),
        ("nginx", access, 1795859628.5, 200, 10),
        ("nginx", access.replace("text/event-stream", "application/json"), 1795859628.5, 200, 450),
    ],
)  # fmt: skip
def test_a_request_of_each_format(form: str, text: str, time: float | None, input: int, output: int) -> None:
    [row], counts = rows(form, text)
    assert (row["input_tokens"], row["output_tokens"]) == (input, output)
    assert time is None or row["timestamp_seconds"] == time
    assert not counts


@pytest.mark.parametrize(
    "log",
    [
        "%s,\n%s,\n%s,",
        '{"data": [\n%s,\n%s,\n%s\n], "page": 1}',
        '{"data": [%s]}\n{"data": [%s, %s]}',
        "%s,\n%s,\n%s,\n{",
        "[{},\n%s, %s, %s]",
        "{}\n2026 {}\n%s\n%s\n%s",
    ],
)
def test_lists_and_pages(log: str) -> None:
    found, counts = rows("litellm", log % tuple(payload.replace('"a"', f'"{name}"') for name in "012"))
    assert (len(found), sum(counts.values())) == (3, log.endswith("{") + log.count("{}"))


@pytest.mark.parametrize(
    ("form", "text", "why"),
    [
        ("vllm", head + "Received request c-1: params: P()\n" + head + "Request c-1 aborted.", "failed"),
        ("vllm", head + "Received request c-1: params: P()", "without time, lengths or answer"),
        ("sglang", finish.replace("'length', 'length'", "'abort', 'length'"), "failed"),
        ("sglang", finished.replace("r1", "HEALTH_CHECK_1"), "health checks"),
        ("sglang", finished.replace("request.finished", "request.received"), "other events"),
        ("litellm", payload.replace('"success"', '"failure"'), "failed"),
        ("litellm", payload.replace('"cache_hit": null', '"cache_hit": "True"'), "answered by the proxy's cache"),
        ("litellm", payload.replace("acompletion", "aembedding"), "other calls"),
        ("nginx", access.replace("/v1/chat/completions", "/health"), "other paths"),
        ("nginx", access.replace(" 200 ", " 429 "), "failed"),
        ("nginx", access.replace("POST", "GET"), "no POST"),
    ],
)
def test_what_is_left_out_is_counted(form: str, text: str, why: str) -> None:
    assert rows(form, text) == ([], {why: 1})


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("text", ["", "the cat sat on the mat", "[" * 100000, '{"a": 1e999}', "\0\xff", "x,y\n1,2\n"])
def test_a_log_of_another_form_is_an_error(form: str, text: str) -> None:
    with pytest.raises(ValueError, match="no line tells of a request|lines about requests are not of this format"):
        rows(form, text)


def test_prompts_that_begin_alike_have_the_same_numbers_and_no_text_is_written() -> None:
    def chat(id: str, user: str) -> str:
        messages = [{"role": "system", "content": "rule of the house " * 40}, {"role": "user", "content": user}]
        line = json.loads(payload) | {"id": id, "messages": messages, "session_id": "secretname", "prompt_tokens": 400}
        return json.dumps(line)

    found, _ = rows(
        "litellm", chat("a", "When does the boat leave? " * 9) + "\n" + chat("b", "Which ferry is it? " * 9)
    )
    first, second = (row["hash_ids"] for row in found)
    same = sum(a == b for a, b in zip(first, second))
    assert 8 < same < len(first) and first[:same] == list(range(1, same + 1))
    assert found[0]["session_id"] == found[1]["session_id"] == 1
    assert not any(word in json.dumps(found) for word in ("house", "boat", "ferry", "secretname"))


def test_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.gz"
    with gzip.open(log, "wt") as stream:
        stream.write(access + "\n" + access.replace("POST", "GET") + "\n")
    out = io.StringIO()
    assert main(["nginx", str(log)], out) == 0
    assert json.loads(out.getvalue())["input_tokens"] == 200
    assert capsys.readouterr().err == "left out: 1 no POST\n"
    row = tmp_path / "row.json"
    row.write_text('{"patterns": ["(?P<time>\\\\d+) (?P<input>\\\\d+) in (?P<output>\\\\d+) out"], "time": "iso"}')
    (tmp_path / "mine.log").write_text("1795859626 30 in 4 out\n1795859627 31 in 5 out\n")
    out = io.StringIO()
    assert main(["mine", str(tmp_path / "mine.log"), "--row", str(row)], out) == 0
    assert [json.loads(line)["output_tokens"] for line in out.getvalue().splitlines()] == [4, 5]
    assert main(["apache", str(log)]) == 2
    assert "'apache' is no format: one of vllm, sglang, litellm, nginx" in capsys.readouterr().err
