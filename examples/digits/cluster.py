"""Who am I, and where are the others: read from TF_CONFIG."""

import json
import os
import sys


class Cluster:
    """The cluster spec of this run and this task's place in it."""

    def __init__(self, config):
        self.spec = config["cluster"]
        self.role = config["task"]["type"]
        self.index = int(config["task"]["index"])

    @property
    def workers(self):
        """How many workers there are."""
        return len(self.spec["worker"])

    def address(self, role, index):
        """(host, port) of a task."""
        host, _, port = self.spec[role][index].rpartition(":")
        return host.strip("[]"), int(port)


def from_environment():
    """The cluster that Longshore described to this process."""
    text = os.environ.get("TF_CONFIG")
    if not text:
        sys.exit("TF_CONFIG is not set: start this with `longshore run examples/digits`")
    return Cluster(json.loads(text))
