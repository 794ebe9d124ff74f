"""Distributed training with a parameter server, in the standard library alone.

Each process finds its role and its peers in TF_CONFIG. A worker computes
gradients on its share of the training images; the parameter server averages
them. Worker 0 tests the result.
"""

import random
import sys
import time

import cluster
import digits
import server
import wire

EPOCHS, BATCH = 20, 25
GOAL = 0.90


def work(here):
    """Trains on this worker's share of the images."""
    training, test = digits.load()
    share = training[here.index :: here.workers]
    # Everybody takes the same number of steps: the rounds are in lockstep.
    steps = len(training) // here.workers // BATCH
    order = random.Random(here.index)
    started = time.monotonic()
    with wire.connect(here.address("ps", 0)) as connection:
        wire.send(connection, wire.PULL, [here.index])
        _, weights = wire.receive(connection)
        for epoch in range(1, EPOCHS + 1):
            order.shuffle(share)
            for step in range(steps):
                batch = share[step * BATCH : (step + 1) * BATCH]
                wire.send(connection, wire.PUSH, digits.gradient(weights, batch))
                _, weights = wire.receive(connection)
            if here.index == 0:
                print(f"epoch {epoch:2}: accuracy {digits.accuracy(weights, test):.4f}", flush=True)
        wire.send(connection, wire.DONE)
    print(f"trained on {len(share)} images in {time.monotonic() - started:.1f} s", flush=True)
    if here.index == 0:
        result = digits.accuracy(weights, test)
        print(f"test accuracy: {result:.4f} on {len(test)} images", flush=True)
        if result < GOAL:
            sys.exit(f"below the goal of {GOAL:.2f}")


def main():
    """Plays the role that this process was given."""
    here = cluster.from_environment()
    if here.role == "ps":
        server.serve(here)
    elif here.role == "worker":
        work(here)
    else:
        sys.exit(f"unknown role {here.role!r}: this example has workers and one ps")


if __name__ == "__main__":
    main()
