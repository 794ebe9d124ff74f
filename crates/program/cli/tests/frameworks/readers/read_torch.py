"""What torch.distributed's env:// rendezvous reads.

stdin:  {"env": {"RANK": ..., "WORLD_SIZE": ..., "MASTER_ADDR": ..., "MASTER_PORT": ...}, "expect": {...},
         "really": false, "timeout": 10}
stdout: one line of JSON: rank, world_size, master_addr, master_port, is_master, local_rank or {"error": "..."}.
The real handler runs; unless "really" is true its store is replaced by a recorder, so nothing
is bound or connected. With "really" the TCPStore is created (rank 0 binds the port, others must
find rank 0 within "timeout" seconds).
Needs: torch==2.15.0.
"""
import importlib
import os
from datetime import timedelta

import common


def read(request):
    import torch.distributed as dist

    module = importlib.import_module("torch.distributed.rendezvous")
    seen = {}
    real = module.TCPStore

    class Recorder:
        def __init__(self, host_name, port, world_size, is_master, timeout=None, **rest):
            seen.update(master_addr=host_name, master_port=port, is_master=is_master)
            if request.get("really"):
                self.store = real(host_name=host_name, port=port, world_size=world_size, is_master=is_master,
                                  timeout=timeout, wait_for_workers=False, **rest)

    module.TCPStore = Recorder
    limit = timedelta(seconds=request.get("timeout", 10))
    # init_process_group() calls rendezvous("env://", -1, -1).
    store, rank, size = next(iter(module.rendezvous("env://", timeout=limit)))
    found = {"rank": rank, "world_size": size, **seen}
    try:
        found["local_rank"] = dist.get_node_local_rank()
    except RuntimeError:
        found["local_rank"] = None
    if "LOCAL_WORLD_SIZE" in os.environ:  # no reader in torch; programs read it themselves
        found["local_world_size"] = int(os.environ["LOCAL_WORLD_SIZE"])
    return found


common.main(read)
