#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the launchers in Python make of requests and answers, without a cluster. Pods are rows of
tests/data/kubernetes/pod_states.json: most were read from a cluster (Kubernetes 1.37.2)."""
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "tests/data/kubernetes"
sys.path.insert(0, str(ROOT / "launchers"))
import launcher  # noqa: E402


def loaded(name):
    path = str(ROOT / "launchers" / name)
    loader = importlib.machinery.SourceFileLoader("launcher_" + name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


kubernetes, ray = loaded("kubernetes"), loaded("ray")


def request(*pairs):
    text = "".join(f"{key} {value}".replace("\n", "\nmore ") + "\n" for key, value in pairs)
    return launcher.Request(io.BytesIO((text + "\n").encode()))


def pod_template(pod):
    return ("data", "template " + json.dumps(pod))


SMALL = {"kind": "Pod", "spec": {"containers": [{"name": "engine", "image": "org/engine:1"}]}}


class Output(unittest.TestCase):
    def test_a_reader_that_was_killed_ends_no_launcher(self):
        reader, writer = os.pipe()
        os.close(reader)
        stream = open(writer, "w", encoding="utf-8")
        launcher.show("an engine's line\n", stream)
        launcher.show("and another\n", stream)
        with self.assertRaises(OSError):  # what is left in it has nowhere to go
            stream.close()


class Requests(unittest.TestCase):
    def test_values_with_line_feeds_come_whole(self):
        one = request(("set", "host a"), ("set", "options --x"), ("set", "options --y"),
                      ("file", "a/b"), ("content", "1\n\n 2\n"), ("environment", "A=b=c\nd"),
                      ("word", ""), ("word", "x\ny"))
        self.assertEqual(one.settings(), {"host": ["a"], "options": ["--x", "--y"]})
        self.assertEqual(one.files(), {"a/b": "1\n\n 2\n"})
        self.assertEqual(one.environment(), {"A": "b=c\nd"})
        self.assertEqual(one.all("word"), ["", "x\ny"])

    def test_secrets_are_known_by_their_names(self):
        for name in ("HF_TOKEN", "API_KEY", "MY_SECRET", "DB_PASS"):
            self.assertTrue(launcher.names_secret(name), name)
        for name in ("PWD", "TOKEN_FILE", "VLLM_LOGGING_LEVEL"):
            self.assertFalse(launcher.names_secret(name), name)


class Pods(unittest.TestCase):
    def test_every_way_to_wait_run_and_end_is_known_for_what_it_is(self):
        rows = json.loads((DATA / "pod_states.json").read_text())
        self.assertEqual(len(rows), 49)
        for row in rows:
            with self.subTest(row["what"]):
                state = kubernetes.State(row["pod"], "engine")
                self.assertEqual(state.phase, row["phase"])
                self.assertEqual(state.hopeless, row["hopeless"])
                self.assertEqual(state.believed_after, row["believed_after_seconds"])
                self.assertEqual(state.exit_code, row.get("exit_code"))
                if row.get("deleted"):
                    self.assertTrue(state.deleted)
                self.assertIn(row.get("why", ""), state.why)
                kind, text = state.failure or (None, "")
                self.assertEqual(kind, row["failure"])
                for words in row["says"]:
                    self.assertIn(words, text)

    def test_nothing_is_made_up_of_a_status_that_lacks_it(self):
        for odd in (None, [], {}, {"status": 3}, {"status": {"conditions": {}}}, {
                "spec": None, "status": {"containerStatuses": [None, 1, {"name": "engine",
                                                                        "state": []}]}}):
            state = kubernetes.State(odd, "engine")
            self.assertEqual((state.phase, state.failure), ("waits", None))


class Manifests(unittest.TestCase):
    def job(self, template, *more):
        one = request(("set", "reach pod"), pod_template(template), *more)
        return kubernetes.job_of(kubernetes.Options(one), one)

    def test_a_template_with_everything_becomes_the_job_that_is_written_down(self):
        template = json.loads((DATA / "template.json").read_text())
        words = ["vllm", "serve", "/models/m", "--port=8000", "$(HOME)", "a$$b", "it's \"so\"",
                 "--options=o.json", "o.json"]
        job = self.job(template, ("name", "servetune-abc-1"), ("study", "abc"),
                       ("folder", "/home/me/study/trials/7/prefill-0"), ("devices", "2"),
                       ("stop_within", "21"), ("environment", "CUDA_VISIBLE_DEVICES=0,1"),
                       ("environment", "VLLM_LOGGING_LEVEL=$(X)"), ("file", "o.json"),
                       ("content", "{\"a\": \"$(HOME)\"}\n"), *(("word", one) for one in words))
        self.assertEqual(job, json.loads((DATA / "job.json").read_text()))

    def test_what_cannot_be_in_a_pod_is_refused(self):
        for more in ((("environment", "HF_TOKEN=abc"),), (("file", "x"), ("content", "a" * 262145))):
            with self.assertRaises(launcher.Trouble):
                self.job(SMALL, *more)
        pod = {"spec": {"containers": [dict(SMALL["spec"]["containers"][0],
                                            env=[{"name": "A", "value": "1"}])]}}
        with self.assertRaises(launcher.Trouble):
            self.job(pod, ("environment", "A=2"))

    def test_a_template_is_looked_at_before_anybody_is_asked(self):
        def wrong(pod, images=False, devices="nvidia.com/gpu"):
            return "; ".join(kubernetes.Template(json.dumps(pod), devices, images).wrong)

        def changed(path, value):
            pod = json.loads(json.dumps(SMALL))
            at = pod["spec"] if path[0] != "containers" else pod["spec"]["containers"][0]
            at[path[-1]] = value
            return pod
        self.assertEqual(wrong(SMALL), "")
        self.assertEqual(wrong({"kind": "PodTemplate", "template": SMALL}), "")
        for pod, says in (
                ({"kind": "Deployment"}, "spec.template"), ([], "Pod"),
                (changed(["restartPolicy"], "Always"), "restartPolicy"),
                (changed(["hostNetwork"], True), "hostNetwork"),
                (changed(["containers", "args"], ["x"]), "args"),
                (changed(["containers", "livenessProbe"], {}), "livenessProbe"),
                (changed(["containers", "env"], [{"name": "HF_TOKEN", "value": "x"}]), "HF_TOKEN"),
                (changed(["containers", "image"], None), "image"),
                (changed(["containers", "resources"], {"limits": {"nvidia.com/gpu": 1}}), "limits"),
                (dict(SMALL, metadata={"labels": {"servetune/study": "x"}}), "label"),
                (changed(["containers_"], 1) and {"spec": {"containers": [
                    {"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}}, "`engine`")):
            with self.subTest(says):
                self.assertIn(says, wrong(pod))
        self.assertIn("image", wrong(SMALL, images=True))
        self.assertEqual(wrong(changed(["restartPolicy"], "Never")), "")

    def test_complaints_that_last_are_told_from_those_that_do_not(self):
        for words in ('jobs.batch "x" is forbidden: exceeded quota: q', "error: unknown flag: --x",
                      'Error from server (NotFound): namespaces "x" not found'):
            self.assertTrue(kubernetes.lasts(words), words)
        for words in ("Unable to connect to the server: dial tcp: i/o timeout",
                      "Error from server (Forbidden): pods is forbidden",
                      "the server could not find the requested resource (NotFound)"):
            self.assertFalse(kubernetes.lasts(words), words)


class Checks(unittest.TestCase):
    """kubectl is a script that answers in the words of kubectl 1.37.2."""
    KUBECTL = r"""#!/bin/sh
cd "${0%/*}"
case "$*" in
*"auth can-i"*) [ -e login ] && { cat login >&2; exit 1; }
  while read -r denied; do case "$*" in *"can-i $denied"*) echo no; exit 1 ;; esac; done <denied
  echo yes ;;
*"create --dry-run=server"*) cat >manifest; grep -q '"kind":"Pod"' manifest && kind=pod || kind=job
  [ -e "refused-$kind" ] && { cat "refused-$kind" >&2; exit 1; }; echo "$kind/x" ;;
esac
"""

    def why(self, files, *settings):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in dict({"denied": "", "kubectl": self.KUBECTL}, **files).items():
                (pathlib.Path(folder) / name).write_text(text)
            (pathlib.Path(folder) / "kubectl").chmod(0o755)
            one = request(("set", f"program {folder}/kubectl"), ("set", "reach pod"), *settings,
                          pod_template(SMALL), ("most_devices", "2"))
            check = kubernetes.Check(one, 0)
            return next((why for why in (step() for step in (
                check.login, check.rights, check.manifest)) if why), "")

    def test_each_trouble_has_its_words(self):
        self.assertEqual(self.why({}), "")
        for files, says in (
                ({"login": "error: You must be logged in to the server (Unauthorized)\n"}, "login"),
                ({"login": "The connection to the server 192.0.2.1:6443 was refused\n"},
                 "does not answer"),
                ({"denied": "delete jobs\n"}, "delete jobs.batch"),
                ({"denied": "get pods --subresource=log\n"}, "get pods/log"),
                ({"refused-job": "Error from server (BadRequest): error when creating \"STDIN\": "
                  "Job in version \"v1\": strict decoding error: unknown field \"x\"\n"}, "\"x\""),
                ({"refused-pod": "Error from server (Forbidden): pods \"x\" is forbidden: exceeded "
                  "quota: small\n"}, "quota of its namespace"),
                ({"refused-job": "Error from server (NotFound): namespaces \"n\" not found\n"},
                 "namespaces")):
            with self.subTest(says):
                self.assertIn(says, self.why(files))


class Logs(unittest.TestCase):
    def test_each_line_is_shown_once_over_readings_that_break_off(self):
        shown = []
        log = kubernetes.StampedLog(shown.append)
        lines = [f"2026-11-28T10:00:{i // 10:02}.{i % 10}00000000Z line {i}\n" for i in range(60)]
        lines.insert(31, lines[30])  # printed twice at the same time
        for begin, end in ((0, 20), (5, 40), (15, 61), (0, 61)):
            log.begin()
            for line in lines[begin:end]:
                log.take(line)
        self.assertEqual(shown, [line.split(" ", 1)[1].rstrip("\n") for line in lines])
        self.assertEqual(log.since(), "2026-11-28T10:00:03Z")
        log.take("unable to retrieve container logs\n")
        self.assertIn("unable", log.complaint)

    def test_stamps_are_read_to_the_nanosecond_in_any_zone(self):
        self.assertEqual(kubernetes.nanoseconds("1970-01-01T00:00:01.000000002Z"), 10**9 + 2)
        self.assertEqual(kubernetes.nanoseconds("1970-01-01T02:00:00+02:00"), 0)
        for text in ("", "1970-01-01", "1970-13-01T00:00:00Z", "1970-01-01T00:00:00"):
            self.assertIsNone(kubernetes.nanoseconds(text))


class RayJobs(unittest.TestCase):
    def body(self, *pairs):
        one = request(("set", "address http://head:8265"), ("name", "servetune-abc-1"),
                      ("study", "abc"), ("port", "18003"), ("stop_within", "8"), *pairs)
        return ray.body_of(ray.Options(one), one)

    def printed(self, body):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(["/bin/sh", "-c", body["entrypoint"]], cwd=folder, timeout=20,
                                  env={"PATH": "/usr/bin:/bin", "RAY_ADDRESS": "x"},
                                  capture_output=True, check=False).stdout.decode()

    def test_every_word_comes_through_the_shell_as_it_is(self):
        odd = ["a b", "", "$(id)", "; echo no", "'\"", "it's", "tab\there", "line\nfeed", "\\n", "*",
               "~", "$HOME", "`id`", "!!", "--json={\"a\": \"b c\"}", "\u00e9", "#", "&", ">x", "%s"]
        body = self.body(*(("word", word) for word in ["printf", "<%s>"] + odd))
        self.assertEqual(self.printed(body), "".join(f"<{word}>" for word in odd))
        body = self.body(("file", "deep/options.yaml"), ("content", "a: 'x'\n  b: \\2 %s\n"),
                         ("word", "/bin/sh"), ("word", "-c"),
                         ("word", "echo \"$RAY_ADDRESS.\"; cat deep/options.yaml; pwd"))
        said = self.printed(body)
        self.assertTrue(said.startswith(".\na: 'x'\n  b: \\2 %s\n/"))
        self.assertFalse(pathlib.Path(said.splitlines()[-1]).exists())

    def test_what_a_job_asks_for(self):
        body = self.body(("set", "bound 90.5s"), ("set", "resources.CPU 4"),
                         ("set", "resources.memory 1e9"),
                         ("set", "resources.accelerator_type:H100 0.001"), ("devices", "2"),
                         ("environment", "A=b c"), ("environment", "CUDA_VISIBLE_DEVICES=7"),
                         ("word", "vllm"), ("word", "serve"))
        self.assertEqual(body, {
            "submission_id": "servetune-abc-1",
            "entrypoint": "unset RAY_ADDRESS; exec timeout --signal=TERM --kill-after=20 91 vllm "
                          "serve",
            "metadata": {"servetune": "abc", "servetune_port": "18003", "servetune_bound": "91"},
            "runtime_env": {"env_vars": {"A": "b c", "RAY_JOB_STOP_WAIT_TIME_S": "8"}},
            "entrypoint_num_gpus": 2, "entrypoint_num_cpus": 4.0,
            "entrypoint_memory": 1000000000,
            "entrypoint_resources": {"accelerator_type:H100": 0.001}})


if __name__ == "__main__":
    unittest.main()
