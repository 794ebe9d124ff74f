#!/bin/sh
# Runs a command on all slots of the hostfile. Open MPI starts processes on a host with an
# agent, which it calls like ssh: HOST COMMAND. This agent uses the Kubernetes API, so
# images need no ssh server and pods need no ssh key.
set -eu
# Tasks may share /tmp, but each task has its own working directory.
export TMPDIR="$PWD"
exec mpirun --allow-run-as-root --hostfile "$LONGSHORE_HOSTFILE" \
    --prtemca plm_ssh_agent "$PWD/agent.sh" "$@"
