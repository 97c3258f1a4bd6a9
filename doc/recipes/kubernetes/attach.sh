#!/bin/sh
# Attaches to the first process of a container that runs already, from an ephemeral container of the pod, until Ctrl-C.
# attach.sh POD CONTAINER SIZE FOLDER. FOLDER is a folder of the container in a volume, such as an emptyDir: the container's
# own files are lost after the kill. So are those of the ephemeral container. It ends with the service, since it shares its
# processes, so that the last file that --keep-at has written is the black box. The control group of the service cannot be
# seen from there. Therefore SIZE, such as 460M, is compared with the anonymous memory of the process.
set -eu
pod=$1 container=$2 size=$3 folder=$4
exec "${KUBECTL:-kubectl}" debug -it "$pod" --image=cmt:latest --target="$container" --profile=sysadmin -- \
  /opt/cmt/bin/cmttrace --attach=1 --keep=10min,256M --keep-at="$size" -o "/proc/1/root$folder/service.cmt"
