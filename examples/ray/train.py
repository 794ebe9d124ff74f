"""Ray tasks on a head and a worker.

`ray.init()` finds the cluster with RAY_ADDRESS. The worker joins it with `ray start`.
"""
import os
import socket
import sys
import time

import ray

NODES = 2


def alive():
    return sum(node["Alive"] for node in ray.nodes())


@ray.remote(num_cpus=1)
def square(number):
    time.sleep(0.5)
    return number * number, socket.gethostname()


def main():
    print("head at", os.environ["RAY_ADDRESS"], flush=True)
    ray.init()
    limit = time.time() + 60
    while alive() < NODES and time.time() < limit:
        time.sleep(0.2)
    results = ray.get([square.remote(number) for number in range(8)])
    total = sum(value for value, _ in results)
    hosts = {host for _, host in results}
    print(f"nodes {alive()} (expected {NODES}), work done on {len(hosts)} of them, sum {total} (expected 140)", flush=True)
    good = alive() == NODES and len(hosts) == NODES and total == 140
    print("ok" if good else "failed", flush=True)
    ray.shutdown()
    return not good


if __name__ == "__main__":
    sys.exit(main())
