#!/bin/sh
# Attaches to the first process of a container that runs already, from an ephemeral container of the pod, until Ctrl-C.
# attach.sh POD CONTAINER SIZE. The kill of the service spares the ephemeral container, in another control group. From there
# the group of the service cannot be seen. So SIZE, such as 460M, is compared with the anonymous memory of the process.
set -eu
pod=$1 container=$2 size=$3
exec "${KUBECTL:-kubectl}" debug -it "$pod" --image=cmt:latest --target="$container" --profile=sysadmin -- \
  /opt/cmt/bin/cmttrace --attach=1 --keep=10min,256M --keep-at="$size" -o /tmp/service.cmt
