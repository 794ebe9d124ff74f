"""How torchrun interprets PET_* variables and options.

stdin:  {"env": {"PET_NNODES": ..., ...}, "args": ["--nproc-per-node", "2"], "expect": {...}}
stdout: one line of JSON: the launch configuration torchrun would start agents with, or {"error": "..."}.
Uses torchrun's own parser and torch.distributed.run.run() up to the point where the agent is started;
the endpoint is then split as the launcher does. Nothing is bound or connected.
Needs: torch==2.15.0.
"""
import argparse

import common


def refuse(parser, message):
    raise ValueError(message)  # instead of printing the usage and exiting


def read(request):
    argparse.ArgumentParser.error = refuse
    from torch.distributed import run
    from torch.distributed.launcher import api
    from torch.distributed.elastic.rendezvous import RendezvousParameters

    args = run.parse_args(request.get("args", []) + ["train.py"])
    taken = {}

    def elastic_launch(config, entrypoint):
        taken["config"] = config
        return lambda *rest: None

    run.elastic_launch = elastic_launch
    run.run(args)
    config = taken["config"]
    found = {
        "min_nodes": config.min_nodes,
        "max_nodes": config.max_nodes,
        "nproc_per_node": config.nproc_per_node,
        "rdzv_backend": config.rdzv_backend,
        "rdzv_endpoint": config.rdzv_endpoint,
        "rdzv_configs": config.rdzv_configs,
        "run_id": config.run_id,
        "max_restarts": config.max_restarts,
        "role": config.role,
        "local_addr": config.local_addr,
        "node_rank": args.node_rank,
        "standalone": args.standalone,
    }
    parameters = RendezvousParameters(
        backend=config.rdzv_backend, endpoint=config.rdzv_endpoint, run_id=config.run_id,
        min_nodes=config.min_nodes, max_nodes=config.max_nodes, **config.rdzv_configs)
    # For the static backend: what the workers will get as MASTER_ADDR and MASTER_PORT.
    found["master_addr"], found["master_port"] = api._get_addr_and_port(parameters)
    return found


common.main(read)
