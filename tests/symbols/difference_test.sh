# lifetimes --diff of a program that was built without and with optimisation, and allocates more in one function.

export DEBUGINFOD_URLS=
failed=0
complain() { echo "$*" >&2; failed=1; }

for build in before same after; do
  # Figures of pages depend on the moment.
  cmttrace --stacks --touched=off -o $build.cmt -- "$BUILD/tests/symbols/differing_$build" 2>messages || complain "$build: $(cat messages)"
done

# The function with the buffers is inlined in the build with optimisation.
for sort in peak bytes blocks; do
  lifetimes --diff=before.cmt --sort=$sort --json after.cmt >$sort.json 2>messages || complain "$(cat messages)"
  change=2000
  [ $sort = blocks ] || change=204000
  jq -e --argjson change $change '.contributors[0] | .change == $change and .self.before.allocated_blocks == 0' \
    $sort.json >out || complain "$sort: $(jq -c '.contributors[0] | [.name, .change]' $sort.json)"
done
jq -e '.stacks[0].stack | map(.function) | any(test("add_buffer"))' bytes.json >out ||
  complain "the stack: $(jq -c '.stacks[0].stack' bytes.json)"
jq -e '.contributors | map(select(.change != 0)) | length == 1' bytes.json >out ||
  complain "more has changed: $(jq -c '.contributors[] | [.name, .change]' bytes.json)"

# Optimisation alone changes nothing.
lifetimes --diff=before.cmt --sort=bytes same.cmt | grep -qx 'no difference' || complain "$(lifetimes --diff=before.cmt --sort=bytes same.cmt)"
exit $failed
