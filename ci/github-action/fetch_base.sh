#!/bin/bash
# fetch_base.sh NAME DIR: downloads the artifact NAME of the base branch's last successful run of this workflow into DIR.
# Without one it leaves no DIR, and exits with 0. Variables: BASE_BRANCH, GITHUB_REF_NAME, GITHUB_WORKFLOW,
# GITHUB_REPOSITORY; GH_TOKEN for gh.
set -eu
rm -rf "$2"
if [ "$GITHUB_REF_NAME" = "$BASE_BRANCH" ]; then
  echo "$BASE_BRANCH is recorded as the next baseline"
  exit 0
fi
id=$(gh run list --repo "$GITHUB_REPOSITORY" --workflow "$GITHUB_WORKFLOW" --branch "$BASE_BRANCH" --status success \
  --limit 1 --json databaseId --jq '.[0].databaseId // empty')
if [ -z "$id" ] || ! gh run download "$id" --repo "$GITHUB_REPOSITORY" --name "$1" --dir "$2"; then
  rm -rf "$2"
  echo "::notice::no artifact \"$1\" of a successful run of \"$GITHUB_WORKFLOW\" on $BASE_BRANCH"
fi
