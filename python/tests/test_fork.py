# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
from pathlib import Path

from support import environment, script


def test_a_forked_child_is_told_so_and_leaves_the_study_alone(folder: Path) -> None:
    text = """
        import os, time, warnings
        import servetune as st
        from support import children, comes_true, lives, rate, study
        warnings.simplefilter("ignore", DeprecationWarning)
        s = study(journal="j")
        first = s.ask()
        [program] = children(os.getpid())
        child = os.fork()
        if child == 0:
            for use in (s.ask, lambda: s.tell(first, 3), s.recommendation, lambda: s.optimize(rate)):
                try:
                    use()
                    print("used")
                except st.ForkedError as error:
                    assert "forked child" in str(error) and isinstance(error, RuntimeError), error
            s.close()
            own = study(journal="k")
            own.optimize(rate)
            print("child is done", flush=True)
            raise SystemExit  # by the ordinary way, with all that is done at exit
        assert os.waitpid(child, 0)[1] == 0
        s.tell(first, rate(first.configuration))
        # A child that lives on does not keep the program alive.
        child = os.fork()
        if child == 0:
            time.sleep(100)
        began = time.monotonic()
        s.close()
        assert time.monotonic() - began < 2 and not lives(program)
        os.kill(child, 9)
        os.waitpid(child, 0)
        print("parent is done")
    """
    ran = subprocess.run(script(text, folder), env=environment, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "child is done\nparent is done\n", "")


def test_processes_of_a_pool_are_told_so(folder: Path) -> None:
    text = """
        import multiprocessing, warnings
        import servetune as st
        from support import study
        warnings.simplefilter("ignore", DeprecationWarning)
        s = study()
        def use(_):
            try:
                s.ask()
            except st.ForkedError:
                return "refused"
        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(pool.map(use, range(3)))
            print(s.ask().id)
    """
    ran = subprocess.run(script(text, folder), env=environment, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "['refused', 'refused', 'refused']\n0\n", "")
