"""How horovodrun reads a hostfile.

stdin:  {"hostfile": "host slots=2\\n...", "np": 4, "expect": {...}}
stdout: one line of JSON: hosts_string, order, hosts (name -> slots), ranks (host per rank) or {"error": "..."}.

Needs horovod 0.28.1 importable; nothing has to be compiled for the launcher: unpack the sdist
  pip install 'setuptools<81' wheel packaging cloudpickle psutil pyyaml
  pip download --no-deps --no-binary :all: --no-build-isolation horovod==0.28.1 && tar xf horovod-0.28.1.tar.gz
and put its folder into PYTHONPATH.
"""
import common


def read(request):
    from horovod.runner.common.util import hosts

    with common.hostfile(request) as path:
        text = hosts.parse_host_files(path)
    # As horovodrun continues: the string of -H is parsed, then ranks are assigned.
    found = {"hosts_string": text}
    parsed = hosts.parse_hosts(text)
    found["order"] = [h.hostname for h in parsed]
    found["hosts"] = {h.hostname: h.slots for h in parsed}
    count = request.get("np") or sum(h.slots for h in parsed)
    found["ranks"] = [s.hostname for s in hosts.get_host_assignments(parsed, count, count)]
    return found


common.main(read)
