# Help and version go to standard output. Wrong use gives one line, a pointer to the help, and status 2.
cmtreplay --help > help
head -1 help | grep -qx 'Usage: cmtreplay \[OPTION\]... \[FILE\]...'
cmtreplay -h | cmp - help
test "$(awk 'length > 80' help | wc -l)" = 0
test "$(wc -l < help)" -le 50
tail -n 1 help | grep -qE '^Installed here: libc(, [a-z]+)*$'
cmtreplay --version | grep -qx 'cmtreplay [0-9]*\.[0-9]*\.[0-9]*'
wrong() {
  local status=0
  cmtreplay "$@" > out 2> words || status=$?
  test $status = 2
  test ! -s out
  test "$(wc -l < words)" = 2
  tail -1 words | grep -qx "Try 'cmtreplay --help' for more information."
}
wrong --nothing
head -1 words | grep -qx "cmtreplay: unrecognised option '--nothing'"
wrong --alloc=
wrong --alloc ''
head -1 words | grep -qx 'cmtreplay: --alloc needs a name'
wrong --runs=0
wrong --runs=1001
wrong --runs
wrong a -
wrong -v a b
wrong --suite a
wrong --tasks a
wrong -v --alloc=libc --alloc=null
wrong --verify --csv
wrong --verify --alloc=null
head -1 words | grep -qx 'cmtreplay: --verify needs memory, and null hands out none'
wrong --json --csv
wrong --until=1
head -1 words | grep -qx 'cmtreplay: --until needs --verify and one allocator'
wrong --verify --until=1 --alloc=all
wrong --verify --until=0
wrong --same-program a
head -1 words | grep -qx 'cmtreplay: --same-program needs several recordings'
wrong --same-program a -
wrong --same-program a .
wrong --same-program --results=r a b
wrong --prefix=
wrong -o x --alloc=libc --alloc=null
head -1 words | grep -qx 'cmtreplay: -o needs %a in its name where several allocators are given'
echo 'malloc(8) = 1000<1>' | cmtreplay --runs=1 - | grep -q '^standard input: 1 event,'

# Progress is on a terminal only.
printf 'malloc(8) = 1000<1>\nfree(1000<1>)\n' > two.trace
script -qec 'cmtreplay --runs=100 two.trace 2>&1 > table' /dev/null < /dev/null > screen
grep -aqE 'run [0-9]+ of about 20[0-9]+, [0-9]+ s left: (libc|null)' screen
cmtreplay --runs=1 two.trace 2> words > table
test ! -s words

# -v writes the new trace to standard output, also if -o names a file for the report.
cmtreplay -v --runs=1 -o x.json two.trace > trace 2> words
grep -q '"schema": "cmt.replay/1"' x.json
test ! -s words
grep -q '^malloc(8) = ' trace
wrong --json -o x.svg two.trace
head -1 words | grep -qx 'cmtreplay: -o x.svg is a picture; with --json --plot=x.svg draws it'

# Headings are bold on standard output, if a terminal or --color asks for it.
for when in always auto never; do
  NO_COLOR='' cmtreplay --color=$when --runs=1 two.trace > table 2> words
  [ $when = always ] && bold=$'\e\\[1m' || bold=
  grep -q "^${bold}allocator " table && grep -q "^${bold}resident " table
done
cmtreplay --color=always --runs=1 -v two.trace > trace 2> words
grep -q '^allocator ' words
wrong --color=blue two.trace
