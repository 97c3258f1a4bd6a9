# Manual pages say what the tools do: each has the options that --help has, and mandoc finds nothing wrong in them.

failed=0
complain() { echo "$*" >&2; failed=1; }

# help TOOL: what its --help says, and for one with subcommands theirs. The examples of cmt have options of other tools.
help() {
  [ "$1" != cmt ] || { cmt --help | grep '^  -'; return; }
  if "$1" --help | grep -- --help-all >/dev/null; then "$1" --help-all; else "$1" --help; fi
  [ "$1" != cmtwatch ] || for command in $("$1" --help | sed -n 's/^  \([a-z]*\)   *[a-z].*/\1/p'); do "$1" "$command" --help; done
}

for tool in cmt trace2cmt cmtreplay lifetimes overhead cmtreport cmtwatch cmttrace; do
  page=$SOURCE/man/$tool.1
  help "$tool" | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u >in_help
  grep -oE -- 'Fl -[a-z][a-z0-9-]+' "$page" | sed 's/Fl -/--/' | sort -u >in_page
  diff in_help in_page >difference || complain "$tool: --help (<) and the manual page (>) differ:
$(grep '^[<>]' difference)"
done

# The recorder's settings are environment variables. The page has the variables of the list, and each default of it.
list=$SOURCE/preload/settings_list.h page=$SOURCE/man/libcmttrace.1
sed -n 's/^\.It Ev \(CMTTRACE_[A-Z_]*\).*/\1/p' "$page" | sort -u >in_page
sed -nE 's/^  X\([a-z_]+, "(CMTTRACE_[A-Z_]+)", "[^"]*", [a-z_]+, "([^"]*)", .*/\1 \2/p' "$list" >settings
[ "$(wc -l <settings)" = "$(grep -c '^  X(' "$list")" ] || complain "not all lines of $list were read"
cut -d ' ' -f 1 settings | sort -u >in_list
diff in_list in_page >difference || complain "libcmttrace: the list of settings (<) and the manual page (>) differ:
$(grep '^[<>]' difference)"
while read -r variable default; do
  entry=$(sed -nE "/^\.It Ev $variable\$/,/^\.(It Ev|El)/p" "$page" | sed '1d; /^\.It Ev/d; s/^\.[A-Z][a-z] //' | tr '\n' ' ')
  case "$entry" in
    *default*" ${default:-no default}"* | *" ${default:-no default}"*default*) ;;
    *default*) complain "libcmttrace: the list has '$default' as the default of $variable, the page has another" ;;
    *) [ -z "$default" ] || complain "libcmttrace: the page does not say that the default of $variable is $default" ;;
  esac
done <settings
# Code has no names of its own for them.
! grep -rnE '(getenv|setting_[a-z_]+)\("CMTTRACE_' "$SOURCE/preload" --include='*.c' --include='*.cpp' --include='*.h' ||
  complain "a setting that is named outside of the list"

# groff formats the pages without warnings, also at widths of terminals where a column of a table can be too narrow.
if command -v groff >/dev/null; then
  for page in "$SOURCE"/man/*.[1-9]; do
    for width in 72 80 100; do
      groff -mandoc -Tutf8 -w w -w break -r LL=${width}n -z "$page" 2>warnings
      [ ! -s warnings ] || complain "${page##*/} at $width columns: $(head -n 3 warnings)"
    done
  done
else
  echo "groff is not installed: the pages' lines are not checked"
fi

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
