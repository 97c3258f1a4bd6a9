# The recipes in doc/recipes: their syntax, and that their commands are ones that cmttrace takes.

recipes=$SOURCE/doc/recipes
failed=0
complain() { echo "$*" >&2; failed=1; }

# With a program in place of docker and kubectl, which prints its arguments.
printf '#!/bin/sh\necho "$@" >>%s/started\n' "$PWD" >starter
chmod +x starter
DOCKER=$PWD/starter TRACES=$PWD/traces sh "$recipes/docker/run.sh" image >said || complain "docker/run.sh: exit $?"
KUBECTL=$PWD/starter sh "$recipes/kubernetes/attach.sh" pod service /traces || complain "kubernetes/attach.sh: exit $?"
grep -q -- "--memory=512m .*--volume=$PWD/traces:/traces image" started || complain "docker: $(cat started)"
grep -q -- '--target=service .*--attach=1 --keep=10min,256M --keep-at=90% -o /proc/1/root/traces/%n.%p.cmt' started || complain "kubectl: $(cat started)"

# The options of each recipe, with a program that ends.
options=$(grep -rohE --include=Dockerfile --include='*.yml' --include='*.service' -e '--keep[-a-z]*=[0-9a-zA-Z,]*%?' "$recipes" | sort -u)
[ "$(echo "$options" | wc -l)" = 2 ] || complain "options differ: $options"
# shellcheck disable=SC2086
cmttrace $options -o app.cmt -- true 2>said || complain "cmttrace $options: $(cat said)"

# They take cmt from its place in the image cmt, which has cp and sleep.
grep -q '^FROM debian:.*-slim$' "$SOURCE/doc/containers/Dockerfile" || complain "the image cmt has no programs of Debian"
grep -q '^COPY --from=unpacked [^ ]* /opt/cmt/$' "$SOURCE/doc/containers/Dockerfile" || complain "the image cmt has no /opt/cmt"
grep -q '^COPY --from=cmt /opt/cmt /opt/cmt$' "$recipes/docker/Dockerfile" || complain "docker/Dockerfile: another place"
grep -q '"/opt/cmt/\."' "$recipes/kubernetes/sidecar.yml" || complain "kubernetes/sidecar.yml: another place"

if /usr/bin/python3 -c 'import yaml' 2>/dev/null; then
  for file in "$recipes"/kubernetes/*.yml; do
    /usr/bin/python3 -c 'import sys, yaml; assert yaml.safe_load(open(sys.argv[1]))["spec"]' "$file" || complain "$file"
  done
else
  echo "skipped: no yaml module of Python, so the syntax of the YAML files is not checked"
fi
if command -v systemd-analyze >/dev/null; then
  sed "s|/usr/bin/cmttrace|/bin/true|" "$recipes/systemd/service.service" >service.service
  systemd-analyze verify ./service.service >said 2>&1 || complain "service.service: $(cat said)"
else
  echo "skipped: no systemd-analyze, so the unit is not checked"
fi

# Wrong use is one line and 125.
for wrong in '--keep-at=90%' '--keep=10min --keep-at=100%' '--keep=10min --keep-at=90' '--keep=10min --keep-at=x'; do
  # shellcheck disable=SC2086
  if cmttrace $wrong -o app.cmt -- true 2>said; then status=0; else status=$?; fi
  [ "$status" = 125 ] && [ "$(grep -c . said)" -le 2 ] && grep -q -- --keep-at said || complain "$wrong: $status, $(cat said)"
done
exit $failed
