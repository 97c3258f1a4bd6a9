#!/bin/bash
# comment.sh NAME SUMMARY STATUS: shows SUMMARY, a report of gate.py, in the summary of the job, and as the comment of the
# pull request. A comment of an earlier run is replaced. A new one is written only if STATUS is 3: something is worse.
# Variables: GITHUB_STEP_SUMMARY, GITHUB_REF (refs/pull/7/merge), GITHUB_REPOSITORY; GH_TOKEN for gh.
set -eu
[ -s "$2" ] || exit 0
cat "$2" >>"$GITHUB_STEP_SUMMARY"
[[ $GITHUB_REF =~ ^refs/pull/([0-9]+)/ ]] || exit 0
comments=repos/$GITHUB_REPOSITORY/issues
marker="<!-- cmt gate: $1 -->"
body=$(mktemp)
trap 'rm -f "$body"' EXIT
{ echo "$marker"; head -c 60000 "$2"; } >"$body"
write() {
  local id
  id=$(gh api --paginate "$comments/${BASH_REMATCH[1]}/comments" --jq ".[] | select(.body | startswith(\"$marker\")) | .id") || return
  id=${id%%$'\n'*}
  if [ -n "$id" ]; then
    gh api --silent --method PATCH "$comments/comments/$id" --field "body=@$body"
  elif [ "$3" = 3 ]; then
    gh api --silent --method POST "$comments/${BASH_REMATCH[1]}/comments" --field "body=@$body"
  fi
}
write "$@" || echo "::notice::the comment was not written: a pull request from a fork may not. The job's summary has it."
