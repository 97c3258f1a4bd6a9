# -v writes the trace with the allocator's own addresses. The calls are the same, and no address is live twice. It reads
# from a pipe, too.
/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_trace.py" 20000 3 > t.trace
options=(libc null)
for name in jemalloc mimalloc tcmalloc; do
  if cmtreplay --alloc=$name --runs=1 /dev/null > /dev/null 2>&1; then options+=($name); fi
done
for name in "${options[@]}"; do
  cmtreplay -v --runs=1 --alloc=$name t.trace > $name.trace 2> words
  grep -q '^allocator  *time' words
  /usr/bin/python3 "$SOURCE/tests/cmtreplay/check_new_trace.py" t.trace $name.trace
done
cat t.trace | cmtreplay -v --runs=1 --alloc=null > piped.trace 2> words
sed 's/[0-9a-f]*<//g' piped.trace > piped
sed 's/[0-9a-f]*<//g' null.trace > null
cmp piped null

# cmtreplay reads the trace that it wrote.
cmtreplay --runs=1 --alloc=null libc.trace > table 2> words
head -1 table | grep -q ' 20,000 events'

# -o writes a file for each allocator, as .cmt by its ending. The table stays on standard output.
cmtreplay -o %a.new.cmt --runs=1 --alloc=libc --alloc=null,A=b t.trace > table 2> words
head -2 table | tail -1 | grep -q '^allocator  *time'
trace2cmt -s libc.new.cmt > libc.new
sed 's/[0-9a-f]*</</g; /^#/d' libc.new > new
sed 's/[0-9a-f]*</</g; /^#/d' libc.trace | cmp - new
test -s null_A_b.new.cmt
cmtreplay --output=plain.trace --runs=1 --alloc=null t.trace > table 2> words
sed 's/[0-9a-f]*</</g; /^#/d' plain.trace | cmp - new
status=0
cmtreplay -o /nowhere/at.all --runs=1 --alloc=null t.trace > table 2> words || status=$?
test $status = 1
tail -1 words | grep -qx 'cmtreplay: /nowhere/at.all: No such file or directory'
test ! -s table  # refused before anything ran
mkdir folder
status=0
cmtreplay -o folder --runs=1 --alloc=null t.trace > table 2> words || status=$?
test $status = 1
tail -1 words | grep -qx 'cmtreplay: folder: Is a directory'
test ! -s table
cp t.trace own.trace
status=0
cmtreplay -o own.trace --runs=1 --alloc=null own.trace > table 2> words || status=$?
test $status = 2 && cmp own.trace t.trace
head -1 words | grep -q '^cmtreplay: would replace own.trace, which it reads'
ln -s /dev/full full.cmt
status=0
cmtreplay -o full.cmt --runs=1 --alloc=null t.trace > table 2> words || status=$?
test $status = 1 && grep -q '^allocator ' table
tail -1 words | grep -qx 'cmtreplay: full.cmt: No space left on device'

# The new trace has the allocator's name and the call stacks. Touched pages are left out: the recorded ones are those of
# other addresses, where two runs of a block may be on one page.
cat >own.c <<'END'
#include <stdlib.h>
#include <string.h>
int main(void) {
  for (int i = 0; i < 300; i++) memset(malloc(5000 + i * 37), 1, 3000);
}
END
cc -O0 own.c -o own
cmttrace --stacks -o recorded.cmt -- ./own 2>said
cmtreplay -o new.cmt --runs=1 --alloc=libc recorded.cmt >table 2>words
trace2cmt --verify new.cmt >words 2>&1 || { cat words; exit 1; }
trace2cmt --info new.cmt >info
grep -q '^  allocator *libc.so.6$' info
! grep -q touched info
cmp <(lifetimes --by=function --csv recorded.cmt | cut -d, -f1-3) <(lifetimes --by=function --csv new.cmt | cut -d, -f1-3)
lifetimes --by=function --csv new.cmt | grep -q main

# Threads and times are kept.
printf 'malloc(8) = 1000<1> thread=1 time=5\nfree(1000<1>) thread=2 time=9\n' > timed.trace
cmtreplay -v --runs=1 --alloc=null timed.trace 2> /dev/null | grep -v '^#' | sed 's/[0-9a-f]*</</' > new
printf 'malloc(8) = <1> thread=1 time=5\nfree(<1>) thread=2 time=9\n' | cmp - new
