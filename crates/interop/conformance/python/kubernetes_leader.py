"""The leader election of the official client: a second candidate follows the first."""

import threading

import harness
from kubernetes import client, config
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

config.load_kube_config()
NAMESPACE, NAME = "default", "leader"
started, stopped = [], []


class Lock(ConfigMapLock):
    """A lock whose updates can be made to fail."""

    disconnected = False

    def update(self, *arguments):
        return False if self.disconnected else super().update(*arguments)


def candidate(identity):
    lock = Lock(NAME, NAMESPACE, identity)
    election = electionconfig.Config(
        lock,
        lease_duration=4,
        renew_deadline=2,
        retry_period=1,
        onstarted_leading=lambda: started.append(identity),
        onstopped_leading=lambda: stopped.append(identity),
    )
    runs = threading.Thread(target=leaderelection.LeaderElection(election).run, daemon=True)
    runs.start()
    return lock


first = candidate("first")
harness.until(lambda: started == ["first"])
candidate("second")
core = client.CoreV1Api()


def record():
    lock = core.read_namespaced_config_map(NAME, NAMESPACE)
    return lock.metadata.annotations["control-plane.alpha.kubernetes.io/leader"]


# The leader renews its lock.
before = record()
harness.until(lambda: record() != before)
assert '"first"' in record() and started == ["first"], (record(), started)
first.disconnected = True
harness.until(lambda: stopped == ["first"])
harness.until(lambda: started == ["first", "second"])
assert '"second"' in record(), record()
