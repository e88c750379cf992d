# SPDX-License-Identifier: Apache-2.0
"""The peers' side of the JSON lines (README.md): reads a run's messages and hands them to an optimizer.

An optimizer is a class: __init__(space, direction, budget, seed), ask() -> {name: value} or None when it is done,
tell(configuration, value, failed, infeasible). tell comes for configurations that were not asked too: the default is one.
"""

import json
import sys


def active(parameter, configuration):
    """Whether a parameter's conditions hold; its parents come before it in the space."""
    return all(c["parent"] in configuration and configuration[c["parent"]] in c["values"] for c in parameter["when"])


def configured(space, place_of):
    """The configuration whose active parameters have the levels at these places."""
    configuration = {}
    for p in space:
        if active(p, configuration):
            configuration[p["name"]] = p["values"][place_of(p)]
    return configuration


def place_in(configuration, parameter):
    """Of a parameter's level; where it is inactive, of its default, or the first."""
    level = configuration.get(parameter["name"], parameter["default"])
    return parameter["values"].index(level) if level in parameter["values"] else 0


def serve(optimizer_class):
    optimizer = None
    for line in sys.stdin:
        message = json.loads(line)
        if "space" in message:
            optimizer = optimizer_class(message["space"], message["direction"], message["budget"], message["seed"])
        elif "ask" in message:
            configuration = optimizer.ask()
            answer = {"finished": True} if configuration is None else {"configuration": configuration}
            print(json.dumps(answer), flush=True)
        elif "tell" in message:
            told = message["tell"]
            optimizer.tell(told["configuration"], told.get("value"), told.get("failed", False), told.get("infeasible", False))
        else:
            raise SystemExit("unknown message: " + line)
