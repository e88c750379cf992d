# SPDX-License-Identifier: Apache-2.0
"""Ax keeps the experiment, servetune says what to try: trials are attached to Ax, with its records, database and charts.

Needs `pip install servetune ax-platform`.
"""

import math

import servetune as st
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig


def train(flags: st.Configuration) -> float:
    """Stands for your own training."""
    worse = {"adam": 0, "sgd": 0.3}[flags["method"]] + abs(flags["layers"] - 4) / 10
    return float(1 + (math.log10(flags["rate"]) + 2.4) ** 2 + worse)


client = Client()
client.configure_experiment(
    parameters=[
        RangeParameterConfig(name="rate", parameter_type="float", bounds=(1e-5, 1e-1), scaling="log"),
        ChoiceParameterConfig(name="method", parameter_type="str", values=["sgd", "adam"]),
        RangeParameterConfig(name="layers", parameter_type="int", bounds=(1, 8)),
    ]
)
client.configure_optimization(objective="-loss")

parameters = [
    st.real("rate", 1e-5, 1e-1, log=True, default=1e-3),
    st.choice("method", ["sgd", "adam"]),
    st.integer("layers", 1, 8, default=2),
]
with st.Study(parameters, minimize="loss", trials=20) as study:
    while trial := study.ask():
        index = client.attach_trial(parameters=dict(trial.configuration))
        loss = train(trial.configuration)
        client.complete_trial(index, raw_data={"loss": loss})
        study.tell(trial, loss)
    print(study.recommendation())

print(client.summarize().tail(3).to_string())
