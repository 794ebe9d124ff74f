"""DistributedDataParallel with gloo and the env:// init method.

It reads only RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
"""
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

# Imported before init_process_group: default arguments of its functions are the process group of
# the time of the import. DistributedDataParallel imports it, too, and the process group would then
# exist until the interpreter ends.
import torch.distributed.nn  # noqa: F401
from torch.nn.parallel import DistributedDataParallel

STEPS = 20


def main():
    torch.set_num_threads(1)
    shown = {k: os.environ.get(k) for k in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK")}
    dist.init_process_group("gloo", timeout=timedelta(seconds=120))
    rank, size = dist.get_rank(), dist.get_world_size()

    def say(text):
        print(f"[rank {rank}] {text}", flush=True)

    bad = 0
    say(f"environment {shown}")
    if str(rank) != shown["RANK"] or str(size) != shown["WORLD_SIZE"]:
        say(f"WRONG: the group says rank {rank} of {size}")
        bad = 1

    # 1 + 2 + ... + size
    value = torch.tensor([rank + 1.0])
    dist.all_reduce(value)
    wanted = size * (size + 1) / 2
    say(f"all_reduce of rank + 1 over {size} tasks: {value.item():g} (expected {wanted:g})")
    if value.item() != wanted:
        say("WRONG sum")
        bad = 1

    # Each rank has different initial weights and rows. DDP copies the weights of rank 0 to
    # all ranks and averages the gradients.
    torch.manual_seed(1000 + rank)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first = last = 0.0
    for step in range(STEPS):
        x = torch.randn(64, 4)
        y = x.sum(1, keepdim=True).sin()
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        last = mean.item() / size
        first = first if step else last
    flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    everyone = [torch.empty_like(flat) for _ in range(size)]
    dist.all_gather(everyone, flat)
    spread = max((other - flat).abs().max().item() for other in everyone)
    say(f"loss {first:.4f} -> {last:.4f}, largest difference of the weights between ranks {spread:.1e}")
    if spread != 0.0 or not last < first:
        say("WRONG result of the training")
        bad = 1
    dist.barrier()
    # The model refers to the process group. With the last reference, destroy_process_group ends
    # the threads of gloo; a thread that still runs at the end of the interpreter can abort the
    # process with "terminate called without an active exception".
    del model
    dist.destroy_process_group()
    say("ok" if not bad else "failed")
    return bad


if __name__ == "__main__":
    sys.exit(main())
