#!/bin/sh
# HOST COMMAND…, as ssh takes them.
host=$1
shift
exec longshore exec "$host" -- sh -c "cd '$PWD' && export TMPDIR='$PWD' && $*"
