#!/bin/sh
# Attaches to the first process of a container that runs already, from an ephemeral container of the pod, until Ctrl-C.
# attach.sh POD CONTAINER FOLDER. FOLDER is a folder of the container in a volume, such as an emptyDir: the container's own
# files are lost after the kill. Files of the ephemeral container are lost, too: it ends with the service, whose processes it
# shares. The last file that --keep-at has written is the black box. The 90 % are of the container's own limit.
set -eu
case $#${3-} in 3/*) ;; *) echo 'Usage: attach.sh POD CONTAINER /FOLDER' >&2; exit 2 ;; esac
pod=$1 container=$2 folder=$3
exec "${KUBECTL:-kubectl}" debug -it "$pod" --image=cmt:latest --target="$container" --profile=sysadmin -- \
  /opt/cmt/bin/cmttrace --attach=1 --keep=10min,256M --keep-at=90% -o "/proc/1/root$folder/%n.%p.cmt"
