# SPDX-License-Identifier: Apache-2.0
"""Imports an engine's own argument parser and checks from a folder, for scripts/check-parser and scripts/engine-flags.

What the engine imports and this Python has not got (torch, CUDA libraries, transformers) is replaced by modules that
answer everything with nothing; a file of the engine that cannot be imported with these is replaced, too, and kept by
name. So what a parser and its checks say is real, as far as they go.
"""
import argparse
import atexit
import collections
import contextlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import io
import json
import logging
import os
import pathlib
import shutil
import sys
import tempfile
import types

sys.dont_write_bytecode = True
from stand_ins import FAILED, WORLD, AnyClass, ForgivingFinder, MissingFinder, MissingModule, Nothing  # noqa: E402  beside this file

# --- the engines

FACTS = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_attention_heads": 32, "num_key_value_heads": 4,
    "num_hidden_layers": 48, "hidden_size": 2048, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8,
    "vocab_size": 151936, "max_position_embeddings": 40960, "gpu_memory_gib": 80, "gpus": 8, "capability": [9, 0],
}


class FactsOf:
    """A model's configuration: the facts, and nothing else."""

    def __init__(self, facts):
        self.__dict__.update(facts)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def to_dict(self):
        return dict(self.__dict__)

    def get_text_config(self, *args, **kwargs):
        return self


def one_h100_of_eight(facts):
    bytes_of_memory = int(facts["gpu_memory_gib"] * 2**30)
    capability = tuple(facts["capability"])
    properties = types.SimpleNamespace(total_memory=bytes_of_memory, name="NVIDIA H100 80GB HBM3", multi_processor_count=132, gcnArchName="",
                                       major=capability[0], minor=capability[1])
    WORLD.update({
        "torch.cuda.is_available": lambda: True,
        "torch.cuda.device_count": lambda: facts["gpus"],
        "torch.cuda.current_device": lambda: 0,
        "torch.cuda.get_device_capability": lambda *a, **k: capability,
        "torch.cuda.get_device_properties": lambda *a, **k: properties,
        "torch.cuda.get_device_name": lambda *a, **k: properties.name,
        "torch.cuda.mem_get_info": lambda *a, **k: (bytes_of_memory, bytes_of_memory),
        "transformers.utils.cached_file": lambda *a, **k: None,
        "torch.version.cuda": "12.9", "torch.version.hip": None, "torch.__version__": "2.11.0",
        "torch.dtype": type("dtype", (), {"__module__": "torch"}),
        "torch.Tensor": type("Tensor", (), {"__module__": "torch"}),
        "torch.nn.Module": type("Module", (), {"__module__": "torch.nn"}),
        "torch.device": type("device", (), {"__module__": "torch", "__init__": lambda self, *a, **k: None, "type": "cuda"}),
    })
    torch = sys.modules.get("torch")
    if torch is not None and not isinstance(torch, MissingModule):
        for name, value in WORLD.items():
            if name.startswith("torch.cuda.") and callable(value):
                setattr(torch.cuda, name.rpartition(".")[2], value)
    for name in ("float16", "bfloat16", "float32", "float64", "half", "float8_e4m3fn", "float8_e5m2", "uint8", "int8", "int32", "int64",
                 "bool", "float", "int"):
        WORLD["torch." + name] = WORLD["torch.dtype"]()


def sglang_server_args():
    module = importlib.import_module("sglang.srt.server_args")
    if not hasattr(module, "ServerArgs") or isinstance(module, MissingModule):
        raise ImportError("sglang.srt.server_args cannot be imported")
    return module.ServerArgs


def sglang_parser(_):
    parser = argparse.ArgumentParser()
    sglang_server_args().add_cli_args(parser)
    return parser


def sglang_checks(facts, done):
    one_h100_of_eight(facts)
    server_args = sglang_server_args()
    configuration = FactsOf(facts)
    model = FactsOf({"hf_config": configuration, "hf_text_config": configuration, "attention_arch": "MHA", "is_generation": True,
                     "context_len": facts["max_position_embeddings"], "num_key_value_heads": facts["num_key_value_heads"],
                     "num_attention_heads": facts["num_attention_heads"], "num_hidden_layers": facts["num_hidden_layers"],
                     "head_dim": facts["head_dim"], "quantization": None})
    server_args.get_model_config = lambda self: model
    server_args.get_hf_config = lambda self: configuration
    parser = sglang_parser(facts)
    folder = model_folder(facts)
    with contextlib.suppress(ImportError):
        importlib.import_module("sglang.srt.utils.hf_transformers_utils")
    reader = vars(sys.modules.get("sglang.srt.utils.hf_transformers.config", sys)).get("get_config")
    for module in list(sys.modules.values()):  # whoever imported the reader of a model's configuration
        if reader is not None and vars(module).get("get_config") is reader:
            module.get_config = lambda *a, **k: configuration

    def run(words):
        words = parser.parse_args(words)
        done["parsed"] += 1
        given = server_args.from_cli_args(words)
        done["__post_init__"] += 1
        if hasattr(given, "resolve_once"):  # from 0.5.19: what __post_init__ did before
            given._model_config, given.model_path = model, folder
            given.resolve_once()
            done["resolve_once"] += 1
        given.check_server_args()
        done["check_server_args"] += 1

    return run


def vllm_module(*names):
    """The first of these that can be imported: files move between versions."""
    for name in names:
        with contextlib.suppress(ImportError):
            module = importlib.import_module(name)
            if not isinstance(module, MissingModule):
                return module
    raise ImportError(f"{names[0]} cannot be imported")


def vllm_platform(facts):
    """The CUDA platform, whose arguments and checks are asked for, on a machine without a GPU."""
    one_h100_of_eight(facts)
    platforms = importlib.import_module("vllm.platforms")
    kind = getattr(importlib.import_module("vllm.platforms.cuda"), "NonNvmlCudaPlatform", None)
    if inspect.isclass(kind):
        kind.device_count = classmethod(lambda cls: facts["gpus"])
        kind.get_device_total_memory = classmethod(lambda cls, device_id=0: int(facts["gpu_memory_gib"] * 2**30))
        kind.get_device_name = classmethod(lambda cls, device_id=0: "NVIDIA H100 80GB HBM3")
        capability = importlib.import_module("vllm.platforms.interface").DeviceCapability(*facts["capability"])
        kind.get_device_capability = classmethod(lambda cls, device_id=0: capability)
        kind.is_fully_connected = classmethod(lambda cls, physical_device_ids: True)
        kind.num_compute_units = classmethod(lambda cls, device_id=0: 132)
        platforms._current_platform = kind()
        for name, module in list(sys.modules.items()):  # whoever has asked before
            if name.startswith("vllm.") and "current_platform" in vars(module):
                module.current_platform = platforms._current_platform


def vllm_parser(facts):
    vllm_platform(facts)
    parsing = vllm_module("vllm.utils.argparse_utils")
    front = vllm_module("vllm.entrypoints.common.cli_args", "vllm.entrypoints.launchers.cli_args", "vllm.entrypoints.openai.cli_args")
    parser = parsing.FlexibleArgumentParser()
    return front.make_arg_parser(parser)


def vllm_checks(facts, done):
    parser = vllm_parser(facts)
    arguments = vllm_module("vllm.engine.arg_utils")
    importlib.import_module("vllm.config.vllm").HAS_TRITON = True  # a machine with such a GPU has it
    configs = importlib.import_module("vllm.config")

    def run(words):
        given = parser.parse_args(words)
        done["parsed"] += 1
        engine = arguments.AsyncEngineArgs.from_cli_args(given)
        done["engine arguments"] += 1
        if whole:
            engine.model = model
            engine.create_engine_config(usage)
            done["VllmConfig"] += 1
        else:
            check_vllm(configs, engine, facts, done)

    whole = importlib.util.find_spec("torch") is not None and importlib.util.find_spec("transformers") is not None \
        and not isinstance(importlib.import_module("torch"), MissingModule)
    usage = importlib.import_module("vllm.usage.usage_lib").UsageContext.OPENAI_API_SERVER  # some defaults are a server's
    model = model_folder(facts)
    return run


def model_folder(facts):
    """A model that is a configuration only: what is checked before weights are looked at."""
    folder = tempfile.mkdtemp(prefix="check-parser-")
    atexit.register(shutil.rmtree, folder, True)
    os.environ["HF_HUB_OFFLINE"] = "1"
    known = {**facts, "torch_dtype": "bfloat16", "moe_intermediate_size": 768, "intermediate_size": 6144, "norm_topk_prob": True,
             "decoder_sparse_step": 1, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "hidden_act": "silu", "tie_word_embeddings": False}
    pathlib.Path(folder, "config.json").write_text(json.dumps(known), encoding="utf-8")
    return folder


def check_vllm(configs, engine, facts, done):
    """The configuration classes that need no model, with what the flags set."""
    length = engine.max_model_len or facts["max_position_embeddings"]
    made = {}
    defaults = getattr(engine, "_set_default_max_num_seqs_and_batched_tokens_args", None)
    if defaults is not None:  # what the engine takes where a flag is not given
        if engine.enable_chunked_prefill is None:
            engine.enable_chunked_prefill = True
        model = FactsOf({**facts, "max_model_len": length, "model": engine.model, "is_multimodal_model": False, "runner_type": "generate",
                         "is_chunked_prefill_supported": True, "is_moe": facts["num_experts"] > 0})
        known = {"model_config": model, "usage_context": None, "parallel_config": FactsOf({"world_size": 1})}
        defaults(**{name: known[name] for name in inspect.signature(defaults).parameters})
        done["defaults"] += 1
    for part in ("CacheConfig", "ParallelConfig", "SchedulerConfig", "OffloadConfig", "CompilationConfig", "KernelConfig", "EPLBConfig"):
        kind = getattr(configs, part, None)
        if not inspect.isclass(kind) or isinstance(kind, AnyClass):
            continue
        values = {}
        for name in getattr(kind, "__dataclass_fields__", {}):
            source = {"cache_dtype": "kv_cache_dtype", "policy": "scheduling_policy"}.get(name, name)
            value = getattr(engine, source, None)
            if value is not None and not isinstance(value, Nothing):
                values[name] = value
        if part == "CompilationConfig":
            made[part] = engine.compilation_config
            continue
        if part == "SchedulerConfig":
            values["max_model_len"] = length
            if "is_encoder_decoder" in kind.__dataclass_fields__:
                values["is_encoder_decoder"] = False
        if part == "OffloadConfig":
            values = {}
            for group in ("uva", "prefetch"):
                field = kind.__dataclass_fields__.get(group)
                inner = getattr(sys.modules[kind.__module__], {"uva": "UVAOffloadConfig", "prefetch": "PrefetchOffloadConfig"}[group], None)
                if field is not None and inner is not None:
                    values[group] = inner(**{n: getattr(engine, n) for n in inner.__dataclass_fields__ if getattr(engine, n, None) is not None})
            values["offload_backend"] = engine.offload_backend
        if part == "EPLBConfig":
            continue  # made by the arguments themselves
        made[part] = kind(**values)
        done[part] += 1
    scheduler = made.get("SchedulerConfig")
    if scheduler is not None and hasattr(scheduler, "verify_max_model_len"):
        scheduler.verify_max_model_len(length)
        done["verify_max_model_len"] += 1

PARSERS = {"vllm": vllm_parser, "sglang": sglang_parser}
CHECKS = {"vllm": vllm_checks, "sglang": sglang_checks}


class Imported:
    """An engine's package in a folder: its parser, or a function of its own, with what stands in for the rest."""

    def __init__(self, engine, source, entry="", facts=None):
        """`entry`: MODULE:FUNCTION of an engine that has none here. Throws ImportError."""
        package = entry.split(":")[0].split(".")[0] if entry else engine
        self.engine, self.source, self.entry, self.facts = engine, source, entry, {**FACTS, **(facts or {})}
        self.forgiving, self.missing = ForgivingFinder(package), MissingFinder(package)
        if entry and importlib.machinery.PathFinder.find_spec(package, [str(source.resolve())]) is None:
            raise ImportError(f"no module {entry.partition(':')[0]} in {source}")
        if not entry and engine not in PARSERS:
            raise ImportError(f"--entry MODULE:FUNCTION is needed for {engine}")
        if not entry and not (source / engine / "__init__.py").exists():
            raise ImportError(f"no package {engine} in {source}")
        sys.path.insert(0, str(source.resolve()))
        sys.meta_path.insert(0, self.forgiving)
        try:
            importlib.import_module("packaging.version")
        except ImportError:  # pip has a copy
            for part in ("packaging", "packaging.version", "packaging.specifiers", "packaging.requirements", "packaging.utils"):
                with contextlib.suppress(ImportError):
                    sys.modules[part] = importlib.import_module("pip._vendor." + part)
        sys.meta_path.append(self.missing)
        logging.disable(logging.CRITICAL)

    def silent(self, function, *words):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return function(*words)

    def function(self):
        module, _, name = self.entry.partition(":")
        found = getattr(importlib.import_module(module), name)
        if isinstance(found, Nothing):
            raise ImportError(f"{self.entry} cannot be imported: {self.forgiving.failed.get(module, 'no such function')}")
        return found

    def parser(self):
        """The engine's argparse.ArgumentParser, with every argument."""
        return self.silent(lambda: self.function()() if self.entry else PARSERS[self.engine](self.facts))

    def checks(self):
        """What gives words to the parser and the checks behind it, and counts how far they came."""
        done = collections.Counter()
        if not self.entry:
            return self.silent(CHECKS[self.engine], self.facts, done), done
        call = self.silent(self.function)
        return lambda words: (call(words), done.update(["accepted"])), done
