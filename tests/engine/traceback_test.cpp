// SPDX-License-Identifier: Apache-2.0
// Logs of engines of several processes: the exception of the one that failed first. Each log is
// shortened from a real one, or has the form that its engine's code prints; the names say which.
#include "engine/failure_reader.hpp"

#include "support/test.hpp"

#include <sstream>

using namespace servetune;

namespace {

TracebackReader traceback_of(const std::string& log) {
    TracebackReader reader;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) reader.read(line);
    return reader;
}

/// vLLM 0.24.0 on an H100, the package FlashInfer missing (2026-11-26).
const std::string no_flashinfer =
    R"((APIServer pid=778) INFO 11-26 15:02:50 [api_utils.py:273] non-default args: {'port': 26047}
(APIServer pid=778) WARNING 11-26 15:03:12 [cuda.py:226] Failed to import: ModuleNotFoundError("No module named 'vllm._moe_C'")
(EngineCore pid=902) INFO 11-26 15:03:43 [model_runner.py:302] Model loading took 1.12 GiB and 1.971394 seconds
(EngineCore pid=902) ERROR 11-26 15:03:43 [core.py:1231] EngineCore failed to start.
(EngineCore pid=902) ERROR 11-26 15:03:43 [core.py:1231] Traceback (most recent call last):
(EngineCore pid=902) ERROR 11-26 15:03:43 [core.py:1231]   File "/vllm/v1/engine/core.py", line 1200, in run_engine_core
(EngineCore pid=902) ERROR 11-26 15:03:43 [core.py:1231]                   ^^^^^^^^^^^^^^^^^^
(EngineCore pid=902) ERROR 11-26 15:03:44 [core.py:1231]   File "/vllm/v1/attention/backends/flashinfer.py", line 11, in <module>
(EngineCore pid=902) ERROR 11-26 15:03:44 [core.py:1231] ModuleNotFoundError: No module named 'flashinfer'
(EngineCore pid=902) Process EngineCore:
(EngineCore pid=902) Traceback (most recent call last):
(EngineCore pid=902)   File "/python3.12/multiprocessing/process.py", line 314, in _bootstrap
(EngineCore pid=902) ModuleNotFoundError: No module named 'flashinfer'
[rank0]:[W1126 15:03:44.842730740 ProcessGroupNCCL.cpp:1575] Warning: destroy_process_group() was not called
(APIServer pid=778) Traceback (most recent call last):
(APIServer pid=778)   File "/vllm/v1/engine/utils.py", line 1272, in wait_for_engine_startup
(APIServer pid=778) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
)";

}  // namespace

TEST_CASE("traceback: the process that fails first names the cause, not the one that notices it") {
    const TracebackReader reader = traceback_of(no_flashinfer);
    CHECK(reader.exception() == "ModuleNotFoundError: No module named 'flashinfer'");
    CHECK(reader.place() ==
          R"(File "/vllm/v1/attention/backends/flashinfer.py", line 11, in <module>)");
    CHECK(kind_of_exception(*reader.exception()) == FailureKind::unsupported);
}

TEST_CASE("traceback: workers that write at the same time are told apart") {
    const TracebackReader reader = traceback_of(
        R"((Worker_TP0 pid=11) ERROR 11-26 10:00:00 [m.py:1] Traceback (most recent call last):
(Worker_TP1 pid=12) ERROR 11-26 10:00:00 [m.py:1] Traceback (most recent call last):
(Worker_TP0 pid=11) ERROR 11-26 10:00:00 [m.py:1]   File "a.py", line 1, in load
(Worker_TP1 pid=12) ERROR 11-26 10:00:00 [m.py:1]   File "b.py", line 2, in load
(Worker_TP1 pid=12) ERROR 11-26 10:00:01 [m.py:1] ValueError: 40 heads are not divisible by 16
(Worker_TP0 pid=11) ERROR 11-26 10:00:01 [m.py:1] RuntimeError: connection reset by peer
(EngineCore pid=10) Exception: WorkerProc initialization failed due to an exception in a background process.
)");
    CHECK(reader.exception() == "ValueError: 40 heads are not divisible by 16");
    CHECK(reader.place() == R"(File "b.py", line 2, in load)");
}

TEST_CASE("traceback: a scheduler's message has its prefix in the first line only") {
    // SGLang's way: the logger's prefix, then the text of the traceback as it is.
    const TracebackReader reader = traceback_of(
        R"([2026-11-26 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "scheduler.py", line 2000, in run_scheduler_process
    something(of, the, code)
[2026-11-26 10:00:00] INFO:     still another process
INFO:     Uvicorn says something
  File "pool.py", line 7, in __init__
RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.

[2026-11-26 10:00:01] Received sigquit from a child process. It usually means the child failed.
Traceback (most recent call last):
  File "launch_server.py", line 3, in <module>
RuntimeError: Rank 0 scheduler died during initialization (exit code: 1).
)");
    CHECK(reader.exception() ==
          "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.");
}

TEST_CASE("traceback: MPI's ranks name their lines") {
    const TracebackReader reader = traceback_of(R"([1,1]<stderr>:Traceback (most recent call last):
[1,0]<stderr>:Traceback (most recent call last):
[1,1]<stderr>:  File "/trt/worker.py", line 5, in worker_main
[1,0]<stderr>:  File "/trt/worker.py", line 5, in worker_main
[1,1]<stderr>:tensorrt_llm.errors.RequestError: the KV cache of rank 1 does not fit
[1,0]<stderr>:RuntimeError: Executor worker returned error
)");
    CHECK(reader.exception() ==
          "tensorrt_llm.errors.RequestError: the KV cache of rank 1 does not fit");
}

TEST_CASE(
    "traceback: of a chain the last exception counts, and a message's second line belongs to it") {
    CHECK(traceback_of(R"(Traceback (most recent call last):
  File "a.py", line 1, in f
KeyError: 'rope'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "b.py", line 2, in g
pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig
  Value error, the model has no rope scaling [type=value_error]
    For further information visit a page
)")
              .exception() ==
          "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig Value "
          "error, the model has no rope "
          "scaling [type=value_error]");
    // Another traceback of the same process later is none of the chain.
    CHECK(
        traceback_of(
            "Traceback (most recent call last):\n  File \"a\", line 1, in f\nValueError: first\n"
            "Traceback (most recent call last):\n  File \"b\", line 1, in f\nValueError: second\n")
            .exception() == "ValueError: first");
}

TEST_CASE(
    "traceback: warnings, requests to end and lines that only look like exceptions are no cause") {
    CHECK_FALSE(traceback_of("(W pid=1) WARNING 1-2 3:4 [x] Traceback (most recent call last):\n"
                             "(W pid=1) WARNING 1-2 3:4 [x]   File \"a\", line 1, in f\n"
                             "(W pid=1) WARNING 1-2 3:4 [x] ImportError: an optional package\n")
                    .exception());
    CHECK_FALSE(
        traceback_of(
            "Traceback (most recent call last):\n  File \"a\", line 1, in f\nKeyboardInterrupt\n")
            .exception());
    CHECK_FALSE(traceback_of("Traceback (most recent call last):\n  File \"a\", line 1, in "
                             "f\nasyncio.exceptions.CancelledError\n")
                    .exception());
    CHECK_FALSE(traceback_of("ValueError: without a traceback\nINFO: x\n").exception());
    CHECK_FALSE(
        traceback_of("Traceback (most recent call last):\nINFO:     all is well\n").exception());
    CHECK_FALSE(traceback_of("").exception());
}

TEST_CASE("traceback: colours, C++ and Python's own fatal errors") {
    CHECK(traceback_of("\x1b[36m(W pid=1)\x1b[0m Traceback (most recent call last):\n\x1b[36m(W "
                       "pid=1)\x1b[0m   File \"a\", line 1, in f\n"
                       "\x1b[36m(W pid=1)\x1b[0m torch.OutOfMemoryError: CUDA out of memory.\n")
              .exception() == "torch.OutOfMemoryError: CUDA out of memory.");
    CHECK(traceback_of("terminate called after throwing an instance of 'std::runtime_error'\n  "
                       "what():  no device of that name\n")
              .exception() == "no device of that name");
    CHECK(traceback_of("Fatal Python error: Segmentation fault\n").exception() ==
          "Fatal Python error: Segmentation fault");
    CHECK(kind_of_exception("MemoryError") == FailureKind::out_of_memory);
    CHECK(kind_of_exception("ValueError: x") == FailureKind::other);
    CHECK(kind_of_exception("no device of that name") == FailureKind::other);
}

TEST_CASE("traceback: a line says by its level that something failed") {
    // llama-server (build 11669 of Debian) that is given a model that is not there.
    CHECK(
        is_error_line("0.00.076.293 E llama_model_load: error loading model: failed to load model "
                      "from /nonexistent.gguf"));
    CHECK(is_error_line("0.00.078.099 E srv  llama_server: exiting due to model loading error"));
    CHECK(is_error_line("[10:00:00] [TRT-LLM] [ERROR] Failed to initialize executor"));
    CHECK(is_error_line("error: invalid argument: --no-such-flag"));
    CHECK_FALSE(is_error_line("0.00.076.298 I srv    operator(): cleaning up before exit..."));
    CHECK_FALSE(is_error_line("Errors are counted"));
    CHECK_FALSE(is_error_line("plan E is best"));
    CHECK_FALSE(is_error_line(""));
}

TEST_CASE("traceback: a flood of tracebacks and endless ones take bounded memory") {
    TracebackReader reader;
    for (int i = 0; i < 100'000; ++i)
        reader.read("(W pid=" + std::to_string(i) + ") Traceback (most recent call last):");
    for (int i = 0; i < 100'000; ++i) reader.read("  File \"a\", line 1, in f");
    CHECK_FALSE(reader.exception());
    reader.read("(W pid=99999) Traceback (most recent call last):");
    reader.read("(W pid=99999)   File \"a\", line 1, in f");
    reader.read("(W pid=99999) ValueError: " + std::string(5000, 'x'));
    REQUIRE(reader.exception());
    CHECK(reader.exception()->size() < 600);
}
