# Functions for tests that wait for something. The tests source this file.

# until_true CONDITION: waits for it, but not for ever: ctest would end the test without a word.
until_true() {
  local give_up=$((SECONDS + 240))
  until eval "$1" 2>/dev/null; do
    [ "$SECONDS" -lt "$give_up" ] || { echo "still not so after 240 s: $1" >&2; exit 1; }
    sleep 0.01
  done
}
