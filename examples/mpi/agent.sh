#!/bin/sh
# Arguments: HOST COMMAND…, as for ssh.
host=$1
shift
exec longshore exec "$host" -- sh -c "cd '$PWD' && export TMPDIR='$PWD' && $*"
