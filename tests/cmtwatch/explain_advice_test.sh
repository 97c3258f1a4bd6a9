# The advice of cmtwatch explain: how to learn who allocates.

. "$SOURCE/tests/cmtwatch/common.sh"

[ "$(uname -m)" = x86_64 ] || { echo "skipped: explain reads x86-64 only"; exit 77; }
cat >live.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  for (int i = 0; i < 4000; i++) memset(malloc(3000), 1, 3000);
  if (puts("ready") > 0 && fflush(stdout) == 0) pause();
}
END
cc -O0 -o live live.c 2>err || { echo "skipped: no C compiler"; exit 77; }
begin() {  # begin COMMAND...: `pid` is its number
  rm -f said
  "$@" >said &
  pid=$!
  until_true 'grep -q ready said || ! kill -0 $pid'
}
end() { kill $pid; wait $pid 2>/dev/null || true; }
look() { status_of cmtwatch explain "$@"; tr -s ' \n' ' ' <out >words; }
words() { grep -q -e "$1" words; }

# A recording from the start has the blocks that live, an attached one only later blocks. A core file has no process.
begin ./live
may_read $pid || { echo "skipped: processes may not be read here"; end; exit 77; }
look $pid
words 'cmttrace --stacks -o app.cmt -- COMMAND, then cmtreport app.cmt\.' && words '4,00[0-9] blocks' &&
  words "cmttrace --attach=$pid -o app.cmt names only what is allocated from then on" || complain "live: exit $status, $(cat out err)"
/usr/bin/python3 "$SOURCE/tests/cmtwatch/write_core.py" $pid core || complain "no core"
end
look --core=core
words 'cmttrace --stacks -o app.cmt -- COMMAND' && ! words 'attach' || complain "a core: exit $status, $(cat out err)"
if cc -O0 -static -o live_static live.c 2>err; then
  begin ./live_static
  look $pid
  words 'link the program dynamically, and record it from its start' && ! words 'attach' && ! words 'cmttrace -' ||
    complain "a static program: exit $status, $(cat out err)"
  end
fi

exit $failed
