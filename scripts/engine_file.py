# SPDX-License-Identifier: Apache-2.0
"""What search_spaces/engines/ENGINE.yaml passes, against the facts of a version, for scripts/engine-flags."""
import json
import re
import subprocess
import sys


def numbers(version):
    """0.5.5.post1 -> [0, 5, 5], as the program compares versions."""
    result = []
    for part in re.split(r"[.-]", version.removeprefix("b") if re.fullmatch(r"b\d+", version) else version):
        match = re.match(r"\d+", part)
        if not match:
            break
        result.append(int(match.group()))
    return result


def within(version, since, until):
    """Bounds hold as far as they are precise: 0.12.3 is within until 0.12."""
    def compared(bound):
        a, b = numbers(version), numbers(bound)
        return (a[:len(b)] > b) - (a[:len(b)] < b)
    return (not since or compared(since) >= 0) and (not until or compared(until) <= 0)


def words_of(text):
    return [word.strip().strip("\"'") for word in text.split(",") if word.strip()]


class EngineFile:
    """What search_spaces/engines/ENGINE.yaml passes. Read line by line: the file is ours."""

    def __init__(self, text):
        self.text = text
        self.parameters = {}
        current = None
        for line in text.splitlines():
            head = re.match(r"^  ([\w.]+):\s*$", line)
            if head or re.match(r"^\S", line):
                current = self.parameters.setdefault(head.group(1), {}) if head else None
            key = re.match(r"^    (\w+): (.*)$", line)
            if key and current is not None:
                current[key.group(1)] = key.group(2)

    def passed(self, version):
        """name, its flag without the part behind a dot, and its keys: of each parameter that this version has."""
        for name, keys in self.parameters.items():
            flag, earlier = keys.get("flag", ""), re.match(r"\{until: \"?([^\",]+)\"?, (.*)\}", keys.get("earlier", ""))
            if earlier and within(version, "", earlier.group(1)):
                flag = next(iter(re.findall(r"(?<!_)flag: \"?([^\",}]+)", earlier.group(2))), "")
            if flag and within(version, keys.get("since", "").strip('"'), keys.get("until", "").strip('"')):
                yield name, flag.strip('"').split("=")[0], keys

    def values(self, keys, version):
        """Of a choice: those that this version takes by the file, and all."""
        every = words_of(keys["choice"].strip("[]"))
        bounds = {key: re.findall(r"\"([^\"]+)\": \[([^\]]*)\]", keys.get(key, "")) for key in ("values_since", "values_until")}
        gone = {v for since, vs in bounds["values_since"] if not within(version, since, "") for v in words_of(vs)}
        gone |= {v for until, vs in bounds["values_until"] if not within(version, "", until) for v in words_of(vs)}
        return [v for v in every if v not in gone], every

    def against(self, version, facts, complete):
        """(what is wrong, what a person must decide) of the file in this version."""
        wrong, open_questions = [], []
        known = {}
        for name, fact in facts.items():
            if fact.get("removed"):
                continue
            for spelling in [name] + [s for k in ("aliases", "short", "negations") for s in
                                      ([fact[k]] if isinstance(fact.get(k), str) else fact.get(k, []))]:
                known[spelling] = fact
        for name, flag, keys in self.passed(version):
            fact = known.get(flag.split(".")[0])
            if fact is None:
                if complete:
                    wrong.append(f"{name}: there is no {flag}; write until")
                continue
            if "." in flag:
                continue
            own = keys.get("default", "engine").strip('"')
            if "choice" in keys and "values" in fact:
                taken, every = self.values(keys, version)
                told = [str(v) for v in fact["values"]]
                for value in taken:
                    if value not in told and value not in ("engine", own):
                        wrong.append(f"{name}: {flag} does not take {value}; write values_until or values_since")
                for value in told:
                    if value not in taken:
                        open_questions.append(f"{name}: {flag} takes {value}: " + ("values_since, values_until" if value in every else "new"))
            default = keys.get("engine_default", own).strip('"')
            if fact.get("default") not in (None, "") and default not in ("engine", "none"):
                told = json.dumps(fact["default"]).strip('"')
                if told != default and not (re.fullmatch(r"[\d.]+", told + default) and float(told) == float(default)):
                    wrong.append(f"{name}: the default of {flag} is {told}, not {default}")
        said = set(re.findall(r"(?<![\w-])-{1,2}[A-Za-z][\w-]*", self.text))
        for name, fact in facts.items():
            if not fact.get("removed") and not fact.get("deprecated") and name not in said and not said & set(fact.get("aliases", [])):
                open_questions.append(f"{name} is not in the file: a parameter, or a line of not_about_speed")
        return wrong, open_questions


# Defaults that the file says in another way, as docs/explanation/engines.md tells.
KNOWN_DEFAULTS = {("vllm", "gpu_memory_utilization"), ("llama.cpp", "parallel")}


def check(root):
    """The engine files against every version that is stored. 1 where one is wrong."""
    worst = 0
    for file in sorted(root.glob("*.yaml")):
        engine_file = EngineFile(file.read_text(encoding="utf-8"))
        for version in sorted((root / "versions").glob(file.stem + "-*.json"), key=lambda f: numbers(f.stem[len(file.stem) + 1:])):
            stored = json.loads(version.read_text(encoding="utf-8"))
            wrong, _ = engine_file.against(stored["version"], stored["flags"], stored["complete"])
            wrong = [w for w in wrong if (file.stem, w.split(":")[0]) not in KNOWN_DEFAULTS]
            count = sum(1 for _ in engine_file.passed(stored["version"]))
            print(f"{file.stem} {stored['version']}: {count} flags of the file, {len(stored['flags'])} of the engine, {len(wrong)} wrong")
            for line in wrong:
                print("  " + line)
            worst |= bool(wrong)
    return worst


def newest(root):
    """What is stored and what pip's registry has. 1 where that is another, 2 for no answer."""
    worst = 0
    for engine in sorted(file.stem for file in root.glob("*.yaml")):
        versions = [file.stem[len(engine) + 1:] for file in (root / "versions").glob(engine + "-*.json")]
        stored = max(versions, key=lambda v: (numbers(v), "rc" not in v, v))
        if engine == "llama.cpp":
            print(f"{engine}: {stored} is stored, pip has none of its builds")
            continue
        said = subprocess.run([sys.executable, "-m", "pip", "index", "versions", "--pre", "--retries=1", engine], capture_output=True, text=True)
        there = re.match(r"\S+ \((\S+)\)", said.stdout)
        answer = f"the registry has {there[1]}" if there else "no answer: " + re.search(r"Failed[^']*|timed out|No .*|$", said.stderr)[0]
        off = (there[1] != stored) if there else 2
        worst = max(worst, off)
        print(f"{engine}: {stored} is stored, {answer}" + ": behind" * (off == 1))
    return worst
