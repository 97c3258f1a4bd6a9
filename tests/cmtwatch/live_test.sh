# Checks the views of cmtwatch on a terminal (live.py), and its lines elsewhere.

. "$SOURCE/tests/cmtwatch/common.sh"
hold 1 2 1
/usr/bin/python3 "$SOURCE/tests/cmtwatch/live.py" "$parent" cmtwatch 9>&- || complain "on a terminal"

# In a pipe there are plain lines.
cmtwatch record -o pipe.db --count=3 --interval=1ms --max-cost=100 "$parent" | cat >piped
[ "$(grep -cE '^[0-9.]+ s  [0-9.]+ [KM]iB pss, 1 process$' piped)" = 3 ] &&
  tail -n 1 piped | grep -qE '^peak [0-9.]+ [KM]iB pss at [0-9.]+ s; 3 moments(, [0-9]+ (missed|skipped for their cost))*; recording took [0-9.]+ % of a processor$' ||
  complain "in a pipe: $(cat piped)"
! grep -q "$(printf '\033')" piped || complain "control sequences in a pipe"

# The reader of the lines may be gone: the recording goes on.
/usr/bin/python3 -c 'import os, sys
reads, writes = os.pipe()
os.close(reads)
os.dup2(writes, 1)
os.execvp(sys.argv[1], sys.argv[1:])' cmtwatch record -o gone.db --count=20 --interval=1ms --max-cost=100 "$parent" 2>err || complain "a closed pipe: $?"
[ "$(moments gone.db)" = 20 ] && grep -qx 'cmtwatch record: writing: Broken pipe; the recording goes on' err ||
  complain "a closed pipe: $(moments gone.db) $(cat err)"
let_go
exit $failed
