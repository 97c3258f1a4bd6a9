# The completions that script/completions makes for bash, zsh and fish offer everything that the tools parse: options, the
# words of options with a list, files, commands, processes.

made=$BUILD/completions
[ -e "$made/zsh/_cmt" ] || { echo "$made has no completions: build the target completions" >&2; exit 1; }
failed=0
complain() { echo "$*" >&2; failed=1; }

# Prints the words that bash offers for the last word of a command line. An "=" is a word of its own, as in bash.
offers() {
  bash -c '. "$0/bash/$1"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); "_$1" 2>/dev/null; printf "%s\n" "${COMPREPLY[@]}"' "$made" "$@"
}
# expects WORDS COMMAND-LINE...: these words and no others are offered.
expects() {
  local wanted=$1; shift
  local offered; offered=$(offers "$@" | sort | tr '\n' ' ')
  [ "${offered% }" = "$(tr ' ' '\n' <<<"$wanted" | sort | tr '\n' ' ' | sed 's/ $//')" ] || complain "$*: bash offers: $offered"
}
options_in_help() { grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u; }

for tool in trace2cmt cmtreplay lifetimes overhead cmtreport cmttrace; do
  all=--help; ! "$tool" --help | grep -- --help-all >/dev/null || all=--help-all
  missing=$(comm -23 <("$tool" $all | options_in_help) <(offers "$tool" -- | tr -d = | sort -u))
  [ -z "$missing" ] || complain "$tool: not offered:" $missing
done
subcommands=$(offers cmtwatch '' | grep -v '^-')
[ "$(wc -w <<<"$subcommands")" -ge 8 ] || complain "cmtwatch: offered are" $subcommands
for command in $subcommands; do
  missing=$(comm -23 <(cmtwatch "$command" --help | options_in_help) <(offers cmtwatch "$command" -- | tr -d = | sort -u))
  [ -z "$missing" ] || complain "cmtwatch $command: not offered:" $missing
done
subcommands=$(offers cmt '' | grep -v '^-')
expects "$subcommands" cmt help ''
for command in record 'watch run'; do
  missing=$(comm -23 <(cmt $command --help | options_in_help) <(offers cmt $command -- | tr -d = | sort -u))
  [ -z "$missing" ] || complain "cmt $command: not offered:" $missing
done
expects 'record report replay' cmt re
expects 'pss rss uss anon swap vm' cmt watch get --metric = ''
expects function cmt who --by = fu
offers cmt record -o app.cmt bas | grep -x bash >/dev/null || complain "cmt record: no command is offered"

# list_of TOOL OPTION: the words that the tool says it takes.
list_of() { { "$1" "$2=nonsense" </dev/null 2>&1 || true; } | head -n 1 | sed "s/.*\($2 is\|expected\) //; s/, not .*//; s/ or /, /; s/,//g"; }
for option in 'trace2cmt --from' 'trace2cmt --to' 'lifetimes --by' 'lifetimes --clock' 'overhead --by'; do
  set -- $option
  expects "$(list_of $1 $2)" $1 $2 = ''
done
expects function lifetimes --by = fu
expects function lifetimes --by fu
expects 'auto no yes' cmttrace --follow = ''
expects 'auto off' cmttrace --touched = ''
expects 'pss rss uss anon swap vm' cmtwatch get --metric = ''
expects run cmtwatch ru
expects 'unused peak' overhead --at = ''
for tool in lifetimes overhead cmtreport; do expects 'fold all none' $tool --native = ''; done
expects off cmtreplay --huge-pages = ''
expects end cmtreplay --trim-at = ''
expects 'quick full' cmtreplay --suite = ''
expects 'memory time both' cmtreplay --tune = ''
expects 'tcmalloc tbb' cmtreplay --alloc = t
expects '' cmtreplay --give-back = ''
touch 'a b.cmt' tiny.so; mkdir folder
expects 'tcmalloc tbb tiny.so' cmtreplay --alloc = t
expects 'folder' trace2cmt --debug-dir fol
[ "$(offers lifetimes 'a ')" = 'a b.cmt' ] || complain "a file with a blank is not offered whole"
[ "$(offers lifetimes --plot = 'a ')" = 'a b.cmt' ] || complain "the file of an option is not offered"
offers cmttrace -o app.cmt bas | grep -x bash >/dev/null || complain "cmttrace: no command is offered"
offers cmtwatch get '' | grep -x $$ >/dev/null || complain "cmtwatch get: the process $$ is not offered"
status=0; "$SOURCE/script/completions" 2>err || status=$?
[ $status = 2 ] && grep -qx 'Usage: completions FOLDER TOOL...' err || complain "script/completions: exit $status, $(cat err)"

if command -v fish >/dev/null; then
  for line in 'lifetimes --by=fu --by=function' 'cmttrace --follow=n --follow=no' 'cmtwatch ru run' 'cmtwatch get --met --metric' 'cmt rec record' 'cmt who --by=fu --by=function' 'cmt watch get --met --metric' 'cmt help who who' \
    'cmtreplay --suite=q --suite=quick' 'cmtreplay --alloc=tb --alloc=tbb' 'cmtreplay --alloc=ti --alloc=tiny.so'; do
    HOME=$PWD fish -c "source $made/fish/${line%% *}.fish; complete -C '${line% *}'" | cut -f 1 | grep -x -- "${line##* }" >/dev/null ||
      complain "fish does not complete ${line% *}"
  done
else
  echo "fish is not installed: its completions are not run"
fi

if command -v zsh >/dev/null; then
  cat >try.zsh <<'END'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT= TERM=dumb; fpath=($1 \$fpath); autoload -Uz compinit; compinit -D -u; print REA''DY"
zpty -r shell answer '*READY*' || exit 1
for line tail in 'lifetimes --by=fu' nction 'cmttrace --follow=n' o 'cmtwatch get --met' ric 'cmt watch get --met' ric 'cmt who --by=fu' nction 'cmtreplay --alloc=tb' b 'cmtreplay --alloc=ti' ny.so 'cmtreplay --suite=q' uick; do
  zpty -w -n shell "$line"$'\t'
  zpty -r shell answer "*${line##* }$tail*" || exit 1
  zpty -w -n shell $'\C-u'
done
zpty -d shell
END
  timeout 600 zsh -f try.zsh "$made/zsh" || complain "zsh does not complete"
else
  echo "zsh is not installed: its completions are not run"
fi
exit $failed
