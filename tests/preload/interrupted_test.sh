# Events after one that was never completed are not lost.

# Blocks of 50 KB are below the least size of touched pages here: their events are short ones.
CMTTRACE_TOUCHED=64K /usr/bin/python3 "$SOURCE/tests/preload/checks/interrupted_check.py" "$BUILD/tests/preload/interrupted"
