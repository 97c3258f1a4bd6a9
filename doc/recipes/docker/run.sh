#!/bin/sh
# Runs the image of the Dockerfile with a limit of memory, and the traces in a folder of the host.
# run.sh [IMAGE]. DOCKER=podman uses podman.
set -eu
image=${1:-service}
traces=${TRACES:-$PWD/traces}
mkdir -p "$traces"
"${DOCKER:-docker}" run --rm --memory=512m --memory-swap=512m --volume="$traces:/traces" "$image" || status=$?
# 137: a signal has killed the service. The traces say whether it was for lack of memory.
echo "exit status ${status:-0}; traces in $traces:"
ls "$traces"
