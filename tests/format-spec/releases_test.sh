# Each file of each release is read as that release read it: events, stacks, touched pages, times, labels, metadata.

count=0 failed=0
complain() { echo "$*" >&2; failed=1; }
for text in "$SOURCE"/tests/format-spec/releases/*/*.text; do
  file=${text%.text}.cmt
  count=$((count + 1))
  trace2cmt --to=text "$file" >out 2>err || complain "$file: $(cat err)"
  cmp out "$text" || complain "$file: read in another way than by its release"
  trace2cmt --strict --to=text "$text" 2>err | cmp - "$text" || complain "$text: read in another way than by its release: $(cat err)"
  trace2cmt --verify "$file" >out 2>&1 || complain "$file: --verify: $(cat out)"
done
[ $count -ge 20 ] || complain "only $count files"
exit $failed
