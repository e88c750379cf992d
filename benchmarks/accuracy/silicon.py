# SPDX-License-Identifier: Apache-2.0
"""aiconfigurator's silicon_sample.csv to rows of the form of measured.csv (README.md):
silicon.py SAMPLE FIT HELD [MEASURED]. Prints counts, and of the fitted rows how far repetitions were apart."""
import collections
import csv
import math
import re
import statistics
import sys

HEAD = ["source", "engine", "version", "hardware", "command", "lengths", "in_flight", "requests", "input_tokens",
        "output_tokens", "output_tokens_per_second", "time_per_output_token_mean_seconds",
        "time_to_first_token_mean_seconds"]
# model: (name, by number type: checkpoint, held out with)
ALL = ("vllm", "sglang", "tensorrt-llm")
MODELS = {
    "deepseek-ai/DeepSeek-R1": ("DeepSeek-R1", {"fp8": "deepseek-ai/DeepSeek-R1-0528", "fp4": "nvidia/DeepSeek-R1-0528-FP4"}, ()),
    "nvidia/DeepSeek-R1-NVFP4": ("DeepSeek-R1", {"fp4": "nvidia/DeepSeek-R1-NVFP4"}, ()),
    "deepseek-ai/DeepSeek-V3": ("DeepSeek-V3", {"fp8": "deepseek-ai/DeepSeek-V3", "fp4": "nvidia/DeepSeek-V3-0324-FP4"}, ALL),
    "nvidia/DeepSeek-V3.1-NVFP4": ("DeepSeek-V3", {"fp4": "nvidia/DeepSeek-V3.1-NVFP4"}, ALL),
    "MiniMaxAI/MiniMax-M2.5": ("MiniMax-M2.5", {"fp8": "MiniMaxAI/MiniMax-M2.5", "fp4": "nvidia/MiniMax-M2.5-NVFP4"}, ALL),
    "openai/gpt-oss-120b": ("gpt-oss-120b", {"fp4": "openai/gpt-oss-120b"}, ALL),
    "meta-llama/Llama-3.1-70B": ("Llama-70B", {"fp8": "nvidia/Llama-3.3-70B-Instruct-FP8", "fp4": "nvidia/Llama-3.3-70B-Instruct-FP4"}, ()),
    "Qwen/Qwen3-32B": ("Qwen3-32B", {"": "Qwen/Qwen3-32B", "fp8": "Qwen/Qwen3-32B-FP8", "fp4": "nvidia/Qwen3-32B-NVFP4"}, ("sglang",)),
    "nvidia/Qwen3-32B-NVFP4": ("Qwen3-32B", {"fp4": "nvidia/Qwen3-32B-NVFP4"}, ("sglang",)),
    "Qwen/Qwen3.5-397B-A17B": ("Qwen3.5-397B", {"bf16": "Qwen/Qwen3.5-397B-A17B", "fp8": "Qwen/Qwen3.5-397B-A17B-FP8",
                                               "fp4": "nvidia/Qwen3.5-397B-A17B-NVFP4"}, ALL),
    "moonshotai/Kimi-K2.5": ("Kimi-K2.5", {"int4": "moonshotai/Kimi-K2.5", "fp4": "nvidia/Kimi-K2.5-NVFP4"}, ALL),
    "meta-llama/Llama-3.1-8B-Instruct": ("Llama-3.1-8B", {"": "meta-llama/Llama-3.1-8B-Instruct", "fp8": "RedHatAI/Llama-3.1-8B-Instruct-FP8-block"},
                                         ("vllm", "sglang")),
    "nvidia/Llama-3.1-8B-Instruct-FP8": ("Llama-3.1-8B", {"fp8": "nvidia/Llama-3.1-8B-Instruct-FP8"}, ("vllm", "sglang")),
    "Qwen/Qwen3-235B-A22B-FP8": ("Qwen3-235B", {"fp8": "Qwen/Qwen3-235B-A22B-FP8"}, ()),
    "zhipuai/GLM-5": ("GLM-5", {"fp8": "zai-org/GLM-5-FP8", "fp4": "nvidia/GLM-5-NVFP4"}, ALL),
}
RELEASES = {"gpt-oss-dev": "1.1.0rc1", "glm5-hopper": "0.5.9", "nightly-5b8c30d": "0.19.0", "nightly-dev": "0.5.9",
            "nightly-dev-20260402": "0.5.10", "nightly-dev-cu13-20260401": "0.5.10"}


def version_of(row, engine, model, chip, said):
    version = row["backend_version"]
    image = re.search(r"(nightly\S+|glm5-hopper)", said)
    version = image[1] if image and not version[:1].isdigit() else version
    for start in sorted(RELEASES, key=len, reverse=True):
        if version.startswith(start):
            return RELEASES[start]
    if version:
        return version
    december = "measured=2025-12" in said
    if engine == "sglang":
        return "0.5.5.post1"
    if engine == "vllm":
        return "0.11.2" if december else "0.11.0"
    if model == "gpt-oss-120b":
        return "1.1.0rc1" if chip == "h200-sxm" else "1.2.0rc2" if december else "1.2.0rc0.post1"
    return "1.1.0rc2.post2"


def speculates(engine, model, chip, precision, version, said, dump):
    """May, by what InferenceX's entries with multi-token prediction had as an image on that day."""
    day = (re.search(r"measured=([\d-]+)", said) or [0, ""])[1]
    if dump:
        return False
    if model == "DeepSeek-R1" and engine == "tensorrt-llm":
        return version == "1.2.0rc6.post3" or version == "1.1.0rc2.post2" and day >= "2026-01-07"
    if model == "DeepSeek-R1" and engine == "sglang":
        return version == "0.5.9" and precision == "fp8" and chip == "b200-sxm"
    if model == "Qwen3.5-397B" and version == "0.5.9" and precision == "fp8" and "nightly" not in said:
        return chip != "h200-sxm" and "-amd64" not in said or chip == "h200-sxm" and not "" < day < "2026-03-19"
    return False


def parallel(row, engine, inference_x):
    """Devices, whether attention is split by request, devices of each split, size of expert parallelism."""
    number = lambda key: int(float(row[key] or 0))
    tp, dp, moe_tp, ep = number("tp_size"), number("attention_dp_size"), number("moe_tp_size"), number("moe_ep_size")
    dp = dp or max(1, moe_tp * ep // tp)
    if inference_x and moe_tp == ep > 1:  # multiplied twice
        return ep, dp > 1, 1 if dp > 1 else ep, ep
    if engine == "vllm" and dp == tp > 1:
        return tp, True, 1, tp
    return tp * dp, dp > 1, tp, max(1, ep)


def command(engine, model, checkpoint, chip, inference_x, where, version, load, isl, osl):
    devices, split, tp, ep = where
    blackwell = not chip.startswith("h")
    if engine == "vllm":
        words = [f"vllm serve {checkpoint} --tensor-parallel-size={tp}"]
        if split:
            words.append(f"--data-parallel-size={devices // tp}")
        if ep > 1 or model == "MiniMax-M2.5" and chip == "h200-sxm":
            words.append("--enable-expert-parallel")
        if not inference_x:
            return " ".join(words)
        words += ["--no-enable-prefix-caching", f"--max-model-len={max(10240, isl + osl + 256)}"]
        if model == "Llama-70B":
            words += ["--kv-cache-dtype=fp8 --async-scheduling --max-num-batched-tokens=8192 --gpu-memory-utilization=0.9",
                      f"--max-num-seqs={512 if blackwell else load}"]
        elif model == "gpt-oss-120b":
            words += ["--max-num-batched-tokens=8192 --gpu-memory-utilization=0.9", f"--max-num-seqs={512 if blackwell else load}"]
            words += ["--kv-cache-dtype=fp8"] if blackwell and version >= "0.11.2" else []
            words += ["--async-scheduling"] if version < "0.12" else []
        elif model == "MiniMax-M2.5" and blackwell:
            words += [f"--gpu-memory-utilization=0.9 --kv-cache-dtype=fp8 --max-num-batched-tokens={2 * isl} --stream-interval=20"]
        elif model == "MiniMax-M2.5":
            words += ["--gpu-memory-utilization=0.9 --max-num-seqs=256" if chip == "h100-sxm" else "--gpu-memory-utilization=0.95"]
        else:
            words += [f"--gpu-memory-utilization={0.9 if blackwell else 0.95} --max-num-seqs={load}"]
        return " ".join(words)
    if engine == "sglang":
        words = [f"python3 -m sglang.launch_server --model-path {checkpoint} --tp-size {devices}"]
        if split:
            words.append(f"--enable-dp-attention --dp-size {devices // tp}")
        if ep > 1:
            words.append(f"--ep-size {ep}")
        if not inference_x:
            return " ".join(words)
        if model == "GLM-5" and not blackwell:
            return " ".join(words + ["--mem-fraction-static 0.85"])
        fp4 = "FP4" in checkpoint
        words += ["--disable-radix-cache", f"--chunked-prefill-size {16384 if fp4 else 32768}",
                  f"--mem-fraction-static {0.85 if fp4 or model == 'GLM-5' else 0.82}", f"--cuda-graph-max-bs {max(128, load)}",
                  f"--max-running-requests {max(128, load)}", f"--stream-interval {10 if fp4 or not blackwell else 30}"]
        words += ["--kv-cache-dtype fp8_e4m3"] if blackwell and checkpoint != "Qwen/Qwen3.5-397B-A17B" else []
        return " ".join(words)
    options = ['"enable_attention_dp": true'] if split else []
    words = [f"trtllm-serve {checkpoint} --tp_size {devices}"]
    if ep > 1:
        words.append(f"--ep_size {ep}")
    if inference_x:
        tokens = 16384 if model == "Llama-70B" else 20000 if model == "gpt-oss-120b" else max(8192, load + isl + 64)
        words.append(f"--max_seq_len {max(10240, isl + osl + 256)} --max_num_tokens {tokens}")
        share = {"gpt-oss-120b": 0.85, "Llama-70B": 0.9}.get(model, 0.8 if blackwell else 0.75)
        options += [f'"kv_cache_config": {{"dtype": "fp8", "enable_block_reuse": false, "free_gpu_memory_fraction": {share}}}',
                    f'"stream_interval": {20 if model == "gpt-oss-120b" else 10}']
        words += ["--max_batch_size 512"] if model == "gpt-oss-120b" else []
    return " ".join(words) + (" --extra_llm_api_options options.yaml | {" + ", ".join(options) + "}" if options else "")


def main(sample, fit_file, held_file, *measured):
    left_out = collections.Counter()
    groups = {}
    for row in csv.DictReader(open(sample)):
        if row["mode"] != "agg":
            continue
        engine = {"trtllm": "tensorrt-llm"}.get(row["backend"], row["backend"])
        model, checkpoints, held = MODELS[row["model_path"]]
        said = row["silicon_data_source"]
        day = (re.search(r"measured=([\d-]+)", said) or [0, "9999"])[1]
        chip = row["system"].replace("_", "-")
        half = "held out" if engine in held else "fitted"
        dump = said.startswith("db-dump")
        inference_x = dump or "aic-auto-gap-analysis" not in said
        load = int((re.search(r"silicon_concurrency=(\d+)", said) or [0, "0"])[1])
        where = parallel(row, engine, inference_x)
        devices = where[0]
        version = version_of(row, engine, model, chip, said)
        precision = row["precision"]
        batches = load / float(row["batch_size"])
        if devices > 8 or devices & (devices - 1):
            left_out[half, "several servers"] += 1
        elif load == 0 or not inference_x and batches not in (1, devices if where[1] else 1):
            left_out[half, "load not said, or of several copies"] += 1
        elif speculates(engine, model, chip, precision, version, said, dump):
            left_out[half, "may be speculating"] += 1
        elif engine == "sglang" and precision == "fp4" and day < "2026-01-13":
            left_out[half, "compiling under load"] += 1
        elif precision not in checkpoints:
            left_out[half, "number type not known"] += 1
        else:
            isl, osl = int(row["isl"]), int(row["osl"])
            words = command(engine, model, checkpoints[precision], chip, inference_x, where, version, load, isl, osl)
            key = (half, engine, version, chip, words, "0.8-1.0" if inference_x else "fixed", load, isl, osl)
            source = f"{'InferenceX' if inference_x else 'gap analysis'} {model} {chip}"
            figures = (float(row["silicon_ttft_ms"]) / 1e3, float(row["silicon_tpot_ms"]) / 1e3)
            groups.setdefault(key, [source, model, precision, where, {}])[4][figures] = day

    # the dump calls DeepSeek-R1 V3
    shape = lambda key, group: (key[1:4], key[5:], group[1].replace("-V3", "-R1"), group[2], group[3])
    fitted = {shape(key, group) for key, group in groups.items() if key[0] == "fitted"}
    known = set()
    for row in csv.DictReader(open(measured[0])) if measured else []:
        known.add((row["engine"], row["hardware"], row["in_flight"], f"{float(row['output_tokens_per_second']):.4g}"))
    apart = collections.defaultdict(list)
    rows = {"fitted": [], "held out": []}
    for key, group in groups.items():
        half, engine, version, chip, words, lengths, load, isl, osl = key
        source, _, _, _, found = group
        if half == "held out" and shape(key, group) in fitted:
            left_out[half, "twins of fitted rows"] += 1
            continue
        if half == "fitted" and len(found) > 1:
            for i in (0, 1):
                middle = statistics.median(f[i] for f in found)
                apart[i] += [abs(math.log(f[i] / middle)) * (2 if len(found) == 2 else 1) for f in found]
        ttft, tpot = (statistics.median(f[i] for f in found) for i in (0, 1))
        share = 0.9 if lengths == "0.8-1.0" else 1
        inputs, outputs = isl * share, osl * share
        rate = load * outputs / (ttft + tpot * (outputs - 1))
        if half == "fitted" and (engine, chip, str(load), f"{rate:.4g}") in known:
            left_out[half, "already in measured.csv"] += 1
            continue
        rows[half].append([source, engine, version, chip, words, lengths, load, 10 * load, round(inputs), round(outputs),
                           f"{rate:.5g}", f"{tpot:.5g}", f"{ttft:.5g}"])
    for half, file in (("fitted", fit_file), ("held out", held_file)):
        with open(file, "w", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows([HEAD] + sorted(rows[half]))
        print(f"{half}: {len(rows[half])} rows")
        for (which, why), count in sorted(left_out.items()):
            if which == half:
                print(f"  left out: {count} {why}")
    for i, name in ((0, "TTFT"), (1, "TPOT")):
        values = sorted(apart[i])
        if values:
            print(f"repetitions of fitted rows, {name}: {len(values)} values, apart by {statistics.median(values):.1%} (median), "
                  f"{values[int(0.9 * len(values))]:.1%} (90 %)")


main(*sys.argv[1:])
