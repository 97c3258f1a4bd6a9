# Checks pipes and long traces: memory depends on the live blocks only, and failed output is reported in one line.

# 600,000 events in which two blocks live at a time.
seq 1 200000 | awk '{ printf "malloc(24) = %x<%d>\nrealloc(%x<%d>, 48) = %x<%d>\nfree(%x<%d>)\n",
  4096 + $1 * 48, 2 * $1, 4096 + $1 * 48, 2 * $1, 4096 + $1 * 48, 2 * $1 + 1, 4096 + $1 * 48, 2 * $1 + 1 }' >long.trace

for tool in lifetimes overhead; do
  # 64 MiB beside the live blocks; the limit is on address space, of which a sanitizer takes terabytes.
  if [ -z "${CMT_SANITIZE:-}" ]; then
    (ulimit -v 131072; "$tool" <long.trace | tail -n 1 >last)
  else
    "$tool" <long.trace | tail -n 1 >last
  fi
  grep -q '^free(.*48 bytes, allocated 1 lines ago' last

  status=0; "$tool" long.trace >/dev/full 2>err || status=$?
  [ "$status" = 1 ]
  [ "$(cat err)" = "$tool: writing: No space left on device" ]

  (status=0; "$tool" long.trace 2>err || status=$?; echo $status >code) | head -n 1 >first
  [ "$(cat code)" = 141 ]
  [ ! -s err ]

  status=0; "$tool" one two >out 2>err || status=$?
  [ "$status" = 2 ]
  [ "$(wc -l <err)" = 2 ]
  status=0; "$tool" --strict=yes >out 2>err || status=$?
  [ "$status" = 2 ]
  grep -q -- '--strict' err
  status=0; "$tool" -x >out 2>err || status=$?
  [ "$status" = 2 ]
  grep -q -- '-x' err
done
