# Documents name files and folders that exist. A text in backquotes with a slash is a path from the root of the sources.
# Absolute paths such as /proc, and built files (build/), are not checked, nor are installed ones (share/) and names of reports (cmt.report/1).

failed=0
cd "$SOURCE"
for document in doc/*.md doc/design/*.md CONTRIBUTING.md; do
  for path in $(grep -oE '`[A-Za-z0-9._-]+/[A-Za-z0-9._/*-]*' "$document" | tr -d '`' | sort -u | sed '/^build\//d; /^share\//d; /^cmt\.[a-z_]*\/[0-9]$/d'); do
    compgen -G "$path" >/dev/null || { echo "$document: $path does not exist" >&2; failed=1; }
  done
done
for document in doc/architecture.md CONTRIBUTING.md; do
  grep -qE '`[a-z0-9]+/' "$document" || { echo "$document is missing, or names no path" >&2; failed=1; }
done
# The pictures of pages are of this version.
version=$(sed -n 's/^project(cmt VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
for picture in doc/report.png doc/tutorials/leak.png doc/gallery/*.png; do
  grep -aqF "cmtreport $version" $picture || { echo "$picture is of another version: script/picture" >&2; failed=1; }
done
exit $failed
