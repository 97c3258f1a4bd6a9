# Manual pages say what the tools do: each has the options that --help has, and mandoc finds nothing wrong in them.

failed=0
complain() { echo "$*" >&2; failed=1; }

# help TOOL: what its --help says, and for one with subcommands theirs.
help() {
  "$1" --help
  [ "$1" != cmtwatch ] || for command in $("$1" --help | sed -n 's/^  \([a-z]*\)   *[a-z].*/\1/p'); do "$1" "$command" --help; done
}

for tool in trace2cmt cmtreplay lifetimes overhead cmtreport cmtwatch cmttrace; do
  page=$SOURCE/man/$tool.1
  help "$tool" | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u >in_help
  grep -oE -- 'Fl -[a-z][a-z0-9-]+' "$page" | sed 's/Fl -/--/' | sort -u >in_page
  diff in_help in_page >difference || complain "$tool: --help (<) and the manual page (>) differ:
$(grep '^[<>]' difference)"
done

# The tracer's options are environment variables.
sed -n 's/^\.It Ev \(CMTTRACE_[A-Z_]*\).*/\1/p' "$SOURCE/man/libcmttrace.1" | sort -u >in_page
grep -rhoE '"CMTTRACE_[A-Z_]+' "$SOURCE"/preload --include='*.c' --include='*.cpp' --include='*.h' | tr -d '"' |
  sort -u >in_code
diff in_code in_page >difference || complain "libcmttrace: the code (<) and the manual page (>) differ:
$(grep '^[<>]' difference)"

if command -v mandoc >/dev/null; then
  mandoc -T lint -W warning "$SOURCE"/man/*.[1-9] || complain "mandoc finds faults"
else
  echo "mandoc is not installed: the pages' macros are not checked"
fi

# Finds words that neither a dictionary nor man/words.txt has. Bold text and names in capitals are no words.
if command -v aspell >/dev/null && command -v mandoc >/dev/null && aspell dicts | grep -x en_GB >/dev/null; then
  for page in "$SOURCE"/man/*.[1-9]; do
    unknown=$(mandoc -T utf8 "$page" | sed $'s/.\b//g' | LC_ALL=C.UTF-8 aspell list -l en_GB --encoding=utf-8 | sort -u |
      grep -vxE '[A-Z_]+' | grep -vxFf "$SOURCE/man/words.txt" || true)
    [ -z "$unknown" ] || complain "${page##*/}: not in man/words.txt:" $unknown
  done
else
  echo "aspell or its English is not installed: the pages' words are not checked"
fi
exit $failed
