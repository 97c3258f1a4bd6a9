# A program is killed at a random moment: its trace has every call that had returned.

/usr/bin/python3 "$SOURCE/tests/preload/checks/kill_check.py" "$BUILD/tests/preload/victim" 1 50
