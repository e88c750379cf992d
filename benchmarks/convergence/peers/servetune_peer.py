# SPDX-License-Identifier: Apache-2.0
"""This project's own optimizer from outside: `servetune_peer.py [AUTOTUNE [STRATEGY]]` drives `autotune ask-tell` (docs/reference/your-own-program.md).

Every parameter is a choice of its levels, conditions are `when`. A configuration that breaks a known constraint becomes a rule: the program is started
again with it and told everything once more, so that it costs no trial. The assumed noise is the default's: peers are not told the task's.
"""

import json
import os
import subprocess
import sys
import tempfile

from driver import serve

program = sys.argv[1] if len(sys.argv) > 1 else "autotune"
strategy = sys.argv[2] if len(sys.argv) > 2 else "bayesian"


def level(value):
    return "@no flag" if value is None else value


class ServetunePeer:
    def __init__(self, space, direction, budget, seed):
        entries = {}
        for p in space:
            entries[p["name"]] = {"choice": [level(v) for v in p["values"]], "ordered": p["ordered"], "default": level(p["default"])}
            if p["when"]:
                entries[p["name"]]["when"] = {c["parent"]: [level(v) for v in c["values"]] for c in p["when"]}
        self.study = {"space": entries, "constraints": [], "objective": {direction: "figure"}, "strategy": strategy}
        self.study |= {"budget": {"trials": budget}, "seed": seed}
        self.told = []
        self.start()

    def start(self):
        # JSON is YAML, but for the level without a flag, which is the plain word `engine`.
        text = json.dumps(self.study).replace("${", "$${").replace('"@no flag"', "engine")
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "space.yaml")
            with open(file, "w") as stream:
                stream.write(text)
            self.process = subprocess.Popen([program, "ask-tell", file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.say({"recommend": True})  # once it answers, it has read the file
        for told in self.told:
            self.say({"tell": told})

    def say(self, message):
        print(json.dumps(message), file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline() or '{"error": "autotune has ended"}')
        if "error" in answer:
            raise SystemExit("servetune_peer: " + answer["error"])
        return answer

    def stop(self):
        self.process.stdin.close()
        self.process.wait()

    def ask(self):
        answer = self.say({"ask": True})
        if "configuration" not in answer:
            self.stop()
        return answer.get("configuration")

    def tell(self, configuration, value, failed, infeasible):
        if infeasible:
            self.study["constraints"].append({"forbid": {name: level(v) for name, v in configuration.items()}})
            self.stop()
            self.start()
            return
        self.told.append({"configuration": configuration} | ({"failed": True} if failed else {"value": value}))
        self.say({"tell": self.told[-1]})


serve(ServetunePeer)
