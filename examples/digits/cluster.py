"""Reads this task's role and the addresses of the other tasks from TF_CONFIG."""

import json
import os
import sys


class Cluster:
    """The cluster spec of this run, and the role and index of this task."""

    def __init__(self, config):
        self.spec = config["cluster"]
        self.role = config["task"]["type"]
        self.index = int(config["task"]["index"])

    @property
    def workers(self):
        """The number of workers."""
        return len(self.spec["worker"])

    def address(self, role, index):
        """The (host, port) of a task."""
        host, _, port = self.spec[role][index].rpartition(":")
        return host.strip("[]"), int(port)


def from_environment():
    """The cluster from TF_CONFIG, which Longshore sets."""
    text = os.environ.get("TF_CONFIG")
    if not text:
        sys.exit("TF_CONFIG is not set: start this with `longshore run examples/digits`")
    return Cluster(json.loads(text))
