"""How DeepSpeed's launcher reads a hostfile.

stdin:  {"hostfile": "host slots=2\\n...", "include": "", "exclude": "", "expect": {...}}
stdout: one line of JSON: hosts (name -> slots, in order), order, active (after include/exclude) or {"error": "..."}.
"hostfile": null stands for a file that does not exist.

Needs deepspeed 0.19.8 importable, which needs torch and some small packages but no build: unpack the sdist
  pip download --no-deps --no-binary :all: --no-build-isolation deepspeed==0.19.8 && tar xf deepspeed-0.19.8.tar.gz
  pip install einops hjson msgpack psutil py-cpuinfo pydantic tqdm packaging numpy
and put its folder into PYTHONPATH.
"""
import logging

import common


def read(request):
    logging.disable(logging.CRITICAL)
    from deepspeed.launcher import runner

    if request.get("hostfile") is None:
        return {"hosts": runner.fetch_hostfile("/nonexistent/hostfile")}
    with common.hostfile(request) as path:
        pool = runner.fetch_hostfile(path)
    active = runner.parse_inclusion_exclusion(pool, request.get("include", ""), request.get("exclude", ""))
    return {"hosts": dict(pool), "order": list(pool), "active": dict(active)}


common.main(read)
