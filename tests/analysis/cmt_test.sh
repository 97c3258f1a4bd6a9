# Checks that a .cmt is annotated as the text that it was made from.

golden=$SOURCE/tests/analysis/golden
for name in readme_6655 readme_8 kinds; do
  trace2cmt -o $name.cmt "$golden/$name.trace"
  for tool in lifetimes overhead; do
    "$tool" "$golden/$name.trace" | sed 's/ stack=7  */ /; s/  *# /  # /' >from_text
    "$tool" $name.cmt | sed 's/  *# /  # /' >from_cmt
    diff -u from_text from_cmt
  done
done

# Without addresses there are lifetimes and no neighbours.
sed 's/81[0-9a-f]*</</g' "$golden/readme_6655.trace" >tags.trace
trace2cmt -o tags.cmt tags.trace
lifetimes tags.cmt | grep '16 bytes, allocated 1 lines ago' >found
status=0; overhead tags.cmt >out 2>err || status=$?
[ "$status" = 1 ]
grep -q 'a block without an address' err
