# What comes behind an event that never ended is not lost.

/usr/bin/python3 "$SOURCE/tests/preload/interrupted_check.py" "$BUILD/tests/preload/interrupted"
