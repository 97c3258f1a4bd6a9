# Events after one that was never completed are not lost.

/usr/bin/python3 "$SOURCE/tests/preload/checks/interrupted_check.py" "$BUILD/tests/preload/interrupted"
