# SPDX-License-Identifier: Apache-2.0
"""Of each rule of an engine file, for scripts/check-parser --rules: configurations that this rule alone forbids, and beside
each one a neighbour, of which one value is another one, that every rule allows. Derived from the file, so a new rule has them."""
import json
import random
import re
import time

from engine_file import within  # beside this file


class Unknown(Exception):
    """Inactive, or left to the engine without a known value: a rule that asks for it passes."""


class Settings(dict):
    """What an expression sees."""

    def __init__(self, space, configuration):
        super().__init__()
        self.space, self.configuration = space, configuration

    def __missing__(self, name):
        if name not in self.space.parameters:
            raise Unknown
        return self.space.known(name, self.configuration)


class Facts:
    def __init__(self, facts):
        self.layers, self.attention_heads = facts["num_hidden_layers"], facts["num_attention_heads"]
        self.kv_heads, self.experts = facts["num_key_value_heads"], facts["num_experts"]
        self.context_tokens, self.queries_per_kv_head = facts["max_position_embeddings"], self.attention_heads // self.kv_heads


def has(version, entry):
    return within(version, str(entry.get("since", "")), str(entry.get("until", "")))


def as_list(value):
    return value if isinstance(value, list) else [value]


class Space:
    """An engine file in one version."""

    def __init__(self, file, version, facts):
        self.version, self.facts = version, facts
        self.parameters = {n: p for n, p in file["parameters"].items() if has(version, p)}
        self.rules = [r for r in file["constraints"] if has(version, r) and self.has_all(r)]
        self.launch = file["launch"][next((i for i, w in enumerate(file["launch"]) if w.startswith("--")), len(file["launch"])):]
        self.render_rules = file.get("render", [])
        devices = file.get("devices", [])
        self.devices = devices if isinstance(devices, dict) else {name: {} for name in devices}
        self.model = Facts(facts)
        self.default = {n: p.get("default", "engine" if "text" in p or "engine" in p.get("choice", []) else None)
                        for n, p in self.parameters.items()}

    def has_all(self, rule):
        return all(name in self.parameters for name in self.names(rule))

    def names(self, rule):
        if "forbid" in rule:
            return list(rule["forbid"])
        words = re.findall(r"(?<![\w.'])[a-z_]\w*", re.sub(r"'[^']*'|model\.\w+", "", rule["require"]))
        return [w for w in dict.fromkeys(words) if w not in ("or", "and", "not", "in", "true", "false")]

    def active(self, name, configuration):
        return all(parent in self.parameters and self.active(parent, configuration) and self.is_one_of(parent, configuration, values)
                   for parent, values in self.parameters[name].get("when", {}).items())

    def is_one_of(self, name, configuration, values):
        """Where no flag is passed, the engine's own value counts too."""
        value, values = configuration[name], as_list(values)
        unset = value in (None, "engine")
        return value in values or unset and ("engine" in values or self.parameters[name].get("engine_default", ...) in values)

    def known(self, name, configuration):
        value = configuration[name]
        if not self.active(name, configuration):
            raise Unknown
        if value == "engine":
            value = self.parameters[name].get("engine_default")
            if value is None and self.parameters[name].get("concept") == "max_context_tokens":
                value = self.model.context_tokens
        if value is None:
            raise Unknown
        return value

    def breaks(self, rule, configuration):
        if "forbid" in rule:
            return all(self.active(n, configuration) and configuration[n] in as_list(v) for n, v in rule["forbid"].items())
        try:
            if "code" not in rule:
                rule["code"] = compile(rule["require"], "rule", "eval")  # our own file
            return not eval(rule["code"], {"__builtins__": {}}, self.scope(configuration))
        except Unknown:
            return False

    def scope(self, configuration):
        scope = Settings(self, configuration)
        scope.update({"true": True, "false": False, "model": self.model})
        return scope

    def broken(self, configuration):
        return [rule for rule in self.rules if self.breaks(rule, configuration)]

    def values(self, name):
        p = self.parameters[name]
        if "bool" in p:
            return [False, True]
        if "choice" in p:
            gone = {v for s, vs in p.get("values_since", {}).items() if not within(self.version, str(s), "") for v in as_list(vs)}
            gone |= {v for u, vs in p.get("values_until", {}).items() if not within(self.version, "", str(u)) for v in as_list(vs)}
            chips = p.get("architectures", {})
            return [v for v in p["choice"] if v not in gone and (v not in chips or "hopper" in as_list(chips[v]))]
        if "int" in p:
            low, high, step = p["int"]["low"], p["int"]["high"], p["int"].get("step", 1)
            high = min(high, self.facts["gpus"]) if name in self.devices else high
            near = {low, low + step, low + 2 * step, low + 3 * step, low + 7 * step} | {2**k for k in range(17)}
            return sorted(v for v in near if low <= v <= high and (v - low) % step == 0 or v == low)
        if "real" in p:
            return [p["real"]["low"], p["real"]["high"]]
        return ["engine"]

    def fits(self, configuration):
        product = 1
        for name, when in self.devices.items():
            if name in configuration and not (when and all(configuration[n] in as_list(v) for n, v in when.items())):
                product *= configuration[name]
        return product <= self.facts["gpus"]

    def reach(self, name, configuration, draw):
        """Sets what `when` asks for, all the way up."""
        for parent, values in self.parameters[name].get("when", {}).items():
            if parent not in self.parameters:
                return
            if configuration[parent] not in as_list(values):
                configuration[parent] = draw.choice([v for v in as_list(values) if v in self.values(parent)] or [configuration[parent]])
            self.reach(parent, configuration, draw)

    def probes(self, rule, count, alike=False, tries=3000, seconds=3):
        """[(forbidden by this rule alone, allowed neighbour)], those with the fewest changes first. `alike`: rules about the
        same parameters may forbid it too."""
        draw, end = random.Random(text_of(rule)), time.monotonic() + seconds
        names, found = self.names(rule), {}
        wanted = {n: [v for v in as_list(rule["forbid"][n]) if v in self.values(n) or v == self.default[n]] for n in names} \
            if "forbid" in rule else {n: self.values(n) + [self.default[n]] for n in names}
        for _ in range(tries if all(wanted.values()) else 0):
            if len(found) >= 3 * count or time.monotonic() > end:
                break
            configuration = dict(self.default)
            for name in draw.sample(names, len(names)):
                configuration[name] = draw.choice(wanted[name])
                self.reach(name, configuration, draw)
            if not self.breaks(rule, configuration) or not self.mended(configuration, rule, names, draw, alike):
                continue
            for name in draw.sample(names, len(names)):
                if found_beside := self.neighbour(configuration, name, draw):
                    found.setdefault(tuple(self.words(configuration)), (dict(configuration), found_beside))
                    break
        return sorted(found.values(), key=lambda pair: len(self.words(pair[0])))[:count]

    def mended(self, configuration, rule, names, draw, alike):
        """True once `rule` is the only one that is broken, other parameters changed where that is needed."""
        for _ in range(6):
            others = [r for r in self.broken(configuration) if r is not rule]
            if not others or alike and all(set(self.names(r)) & set(names) for r in others):
                return self.breaks(rule, configuration) and self.fits(configuration)
            free = [n for n in self.names(others[0]) if n not in names]
            if not free:
                return False
            name = draw.choice(free)
            configuration[name] = draw.choice(self.values(name) + [self.default[name]])
            self.reach(name, configuration, draw)
        return False

    def neighbour(self, configuration, name, draw):
        values = self.values(name) + [self.default[name]]
        for value in draw.sample(values, len(values)):
            beside = {**configuration, name: value}
            if value not in (None, configuration[name]) and self.fits(beside) and not self.broken(beside):
                return beside
        return None

    def words(self, configuration):
        words = [{"{model}": "model", "{host}": "127.0.0.1", "{port}": "8000"}.get(word, word) for word in self.launch]
        for name, p in self.parameters.items():
            value = configuration[name]
            if value in (None, "engine") or value == p.get("default") or not self.active(name, configuration):
                continue
            earlier = p.get("earlier", {})
            p = {**p, **earlier} if earlier and within(self.version, "", str(earlier["until"])) else p
            if "bool" in p:
                words += [p["flag"] if value else p["off_flag"]] if (value or "off_flag" in p) and "flag" in p else []
            elif "flag" in p:
                words.append(f"{p['flag']}={value}")
        for rule in self.render_rules:
            if all(self.active(n, configuration) and configuration[n] in as_list(v) for n, v in rule.get("when", {}).items()):
                told = {}
                for key, form in rule["json"].items():
                    names = re.findall(r"\{([a-z0-9_]+)\}", form)
                    if all(n in self.parameters and self.active(n, configuration) and configuration[n] not in (None, "engine") for n in names):
                        told[key] = json.loads(re.sub(r"\{([a-z0-9_]+)\}", lambda n: json.dumps(configuration[n.group(1)]), form))
                words.append(f"{rule['flag']}={json.dumps(told)}")
        return words


def text_of(rule):
    return "require " + rule["require"] if "require" in rule else "forbid " + json.dumps(rule["forbid"])
