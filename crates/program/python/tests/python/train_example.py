"""A module whose functions the tests launch."""

import os

import longshore


def train(rate: float, *, steps: int = 1) -> None:
    print(f"task {os.environ['LONGSHORE_INDEX']} trains with {rate} for {steps} steps", flush=True)


@longshore.task(workers=2)
def decorated(rate: float) -> None:
    train(rate)
