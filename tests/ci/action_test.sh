# ci/github-action/action.yml without GitHub: its steps are run in turn, with a made-up gh that has one artifact and one pull
# request, and its comments.
/usr/bin/python3 -c 'import yaml' 2>/dev/null || { echo "skipped: python3-yaml is not here"; exit 77; }
mkdir bin artifact temp
cat >bin/gh <<'END'
#!/bin/bash
set -eu
echo "$*" >>"$WORK/calls"
case "$*" in
  "run list --repo me/it --workflow CI --branch main "*) [ -z "$(ls "$WORK/artifact")" ] || echo 41 ;;
  "run download 41 --repo me/it --name allocations --dir "*) mkdir "${@: -1}" && cp "$WORK"/artifact/*.cmt "${@: -1}" ;;
  "api --paginate repos/me/it/issues/7/comments "*) [ ! -e "$WORK/comment" ] || echo 99 ;;
  "api --silent --method POST repos/me/it/issues/7/comments "* | "api --silent --method PATCH repos/me/it/issues/comments/99 "*)
    [ ! -e "$WORK/denied" ] || exit 1
    file=${*: -1}
    cp "${file#body=@}" "$WORK/comment" ;;
  *) exit 1 ;;
esac
END
chmod +x bin/gh
export WORK=$PWD PATH=$PWD/bin:$PATH
cc -g -O0 -I"$SOURCE/preload" "$SOURCE/tests/ci/marked.c" -o marked
complain() { echo "$1" >&2; cat out calls >&2; exit 1; }
job() {  # job STATUS BRANCH REF COMMAND
  local status=0
  rm -f calls summary
  /usr/bin/python3 "$SOURCE/tests/ci/run_action.py" "$SOURCE/ci/github-action" temp "$2" "$3" "$4" >out 2>&1 || status=$?
  [ "$status" = "$1" ] || complain "$*: $status"
}

# The first job of the main branch: no baseline. Its recordings are the artifact.
job 0 7/merge refs/pull/7/merge './marked 1000'
grep -q 'no artifact "allocations"' out || complain "a pull request before the first baseline"
[ ! -e comment ] || complain "a comment without a baseline"
job 0 main refs/heads/main './marked 1000'
[ ! -e calls ] || complain "the main branch is compared"
cp temp/cmt-head/*.cmt artifact
# Pull requests: nothing is said if nothing is worse. Then a comment is written, and replaced.
job 0 7/merge refs/pull/7/merge './marked 1000 "5"'
grep -q '0 of 4 figures worse' summary || complain "the job's summary"
[ ! -e comment ] || complain "a comment about nothing"
job 3 7/merge refs/pull/7/merge './marked 1001'
head -n 1 comment | grep -q -x -- '<!-- cmt gate: allocations -->' || complain "the comment's marker"
grep -q -F -x -- '- `parse a::b`: 1,000 → 1,001 allocations (+1), by `parse_line` (+1)' comment || complain "the comment"
job 0 7/merge refs/pull/7/merge './marked 1000'
grep -q 'PATCH repos/me/it/issues/comments/99' calls || complain "the comment is not replaced"
grep -q '0 of 4 figures worse' comment || complain "the comment is old"
# A job that cannot judge fails, and a token that may not write does not change the status.
job 1 7/merge refs/pull/7/merge './marked 1 fail'
touch denied
rm comment
job 3 7/merge refs/pull/7/merge './marked 1001'
grep -q 'the comment was not written' out || complain "a refused comment"
