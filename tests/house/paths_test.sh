# Documents name files and folders that exist. A text in backquotes with a slash is a path from the root of the sources.
# Absolute paths such as /proc, and built files (build/), are not checked.

failed=0
for document in doc/architecture.md CONTRIBUTING.md; do
  [ -f "$SOURCE/$document" ] || { echo "$document is missing" >&2; failed=1; continue; }
  grep -oE '`[A-Za-z0-9._-]+/[A-Za-z0-9._/*-]*' "$SOURCE/$document" | tr -d '`' | sort -u | sed '/^build\//d' >paths
  grep -q . paths || { echo "$document names no path" >&2; failed=1; }
  while read -r path; do
    compgen -G "$SOURCE/$path" >/dev/null || { echo "$document: $path does not exist" >&2; failed=1; }
  done <paths
done
exit $failed
