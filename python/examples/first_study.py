# SPDX-License-Identifier: Apache-2.0
"""The shortest way: a study, and a function that measures."""

import math

import servetune as st


def measure(flags: st.Configuration) -> float:
    """Stands for your own load test: tokens per second of an engine under these flags."""
    full = 12000 * (1 - math.exp(-flags["seqs"] / 200)) * (1 - math.exp(-flags["tokens"] / 6000))
    return full * 1.06 if flags["backend"] == "flashinfer" else full


backend = st.choice("backend", ["flash_attn", "flashinfer"])
seqs = st.integer("seqs", 64, 1024, log2=True, default=256)
tokens = st.integer("tokens", 512, 32768, log2=True, default=8192)
with st.Study([backend, seqs, tokens], rules=["tokens >= seqs"], maximize="tokens_per_second", trials=25) as study:
    print(study.optimize(measure))
