#!/bin/sh
# Runs a command on all slots of the hostfile. Open MPI reaches the hosts by an agent
# that it calls as it would call ssh: HOST COMMAND. Ours goes through the API, so that
# no image needs an ssh server, and no pod a key.
set -eu
# Tasks may share /tmp, but never their folder.
export TMPDIR="$PWD"
exec mpirun --allow-run-as-root --hostfile "$LONGSHORE_HOSTFILE" \
    --prtemca plm_ssh_agent "$PWD/agent.sh" "$@"
