# Checks that every golden trace is annotated as its golden files say, from a file and from a pipe. The traces
# readme_6655 and readme_8 are the examples of the original's README. The trace readme_8 begins with the blocks that are
# the example's neighbours.

golden=$SOURCE/tests/analysis/golden
failed=0
for trace in "$golden"/*.trace; do
  name=$(basename "$trace" .trace)
  for tool in lifetimes overhead; do
    [ -e "$golden/$name.$tool" ] || continue
    "$tool" "$trace" >out 2>err
    cat "$trace" | "$tool" - >piped 2>/dev/null
    cmp out piped
    lines=$(wc -l <"$golden/$name.$tool")
    tail -n "$lines" out | diff -u "$golden/$name.$tool" - || { echo "$tool: $name differs"; failed=1; }
    cp out annotated
    "$tool" annotated 2>/dev/null | cmp - out || { echo "$tool: $name: its own output reads otherwise"; failed=1; }
  done
done
exit $failed
