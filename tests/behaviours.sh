# For test scripts that check several behaviours: runs each under its name, and reports by name which of them failed.
# A script sources this file, states `behaviour "NAME" FUNCTION [ARGUMENT]...` for each, and ends with `exit $failed`.

failed=0

# complain TEXT: reports a failed check. The behaviour goes on.
complain() {
  echo "$*" >&2
  failed=1
}

# behaviour NAME FUNCTION [ARGUMENT]...: runs the function in a subshell, so that a command that fails ends this behaviour
# only. Variables that the function sets are gone afterwards; files that it writes remain.
behaviour() {
  local name=$1 at_exit
  at_exit=$(trap -p EXIT)  # run-script's, which a subshell does not inherit: it names the command that failed
  set +e
  (
    failed=0
    eval "$at_exit"
    set -e
    "${@:2}"
    exit "$failed"
  )
  if [ $? = 0 ]; then
    echo "ok: $name"
  else
    echo "FAILED: $name" >&2
    failed=1
  fi
  stopped=
  set -e
}
