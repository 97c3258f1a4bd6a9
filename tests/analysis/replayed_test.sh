# Checks that the new trace of cmtreplay -v can be annotated: lifetimes are the same, neighbours are the allocator's.

golden=$SOURCE/tests/analysis/golden
for name in readme_6655 readme_8; do
  trace2cmt -o $name.cmt "$golden/$name.trace"
  cmtreplay -v --runs=1 $name.cmt >$name.new 2>table
  for input in $name.cmt $name.new; do
    lifetimes $input 2>$input.err | sed 's/[0-9a-f]*</</g; s/  *# /  # /' >$input.lifetimes
  done
  diff $name.cmt.lifetimes $name.new.lifetimes
  overhead $name.new >out 2>err
  [ ! -s err ]
  [ "$(grep -c ' more pages $' out)" = "$(grep -c ' = ' $name.new)" ]
done
