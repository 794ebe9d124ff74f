"""Ctrl-C interrupts calls that wait."""

import subprocess
import sys
import signal
import time
import unittest

from pods import present

PROGRAM = """
import signal
import longshore
# The parent process may ignore SIGINT, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
with longshore.EmbeddedCluster(pods=False) as embedded:
    resolver = longshore.KubernetesClusterResolver(override_client=embedded.cluster)
    print("waiting", flush=True)
    try:
        resolver.wait({"worker": 1})
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    # The resolver still works.
    print(resolver.tasks().spec(), flush=True)
"""


class Signals(unittest.TestCase):
    def test_ctrl_c_interrupts_a_wait(self) -> None:
        with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as child:
            try:
                self.assertEqual(present(child.stdout).readline(), "waiting\n")
                time.sleep(0.2)
                child.send_signal(signal.SIGINT)
                output, _ = child.communicate(timeout=60)
            finally:
                child.kill()
        self.assertEqual(output, "interrupted\nClusterSpec({'worker': {}})\n")
        self.assertEqual(child.returncode, 0)


if __name__ == "__main__":
    unittest.main()
