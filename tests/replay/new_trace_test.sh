# -v writes the trace with the allocator's own addresses: the same calls, and no address live twice. From a pipe, too.
/usr/bin/python3 "$SOURCE/tests/replay/make_trace.py" 20000 3 > t.trace
options=(libc null)
for name in jemalloc mimalloc tcmalloc; do
  if cmtreplay --alloc=$name --runs=1 /dev/null > /dev/null 2>&1; then options+=($name); fi
done
for name in "${options[@]}"; do
  cmtreplay -v --runs=1 --alloc=$name t.trace > $name.trace 2> words
  grep -q '^allocator  *time' words
  /usr/bin/python3 "$SOURCE/tests/replay/check_new_trace.py" t.trace $name.trace
done
cat t.trace | cmtreplay -v --runs=1 --alloc=null > piped.trace 2> words
sed 's/[0-9a-f]*<//g' piped.trace > piped
sed 's/[0-9a-f]*<//g' null.trace > null
cmp piped null

# What it writes it reads.
cmtreplay --runs=1 --alloc=null libc.trace > table 2> words
head -1 table | grep -q ' 20,000 events'
