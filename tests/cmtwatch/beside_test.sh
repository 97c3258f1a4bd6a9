# Checks the line that cmtwatch shows on the terminal of a command (beside.py).

. "$SOURCE/tests/cmtwatch/common.sh"
/usr/bin/python3 "$SOURCE/tests/cmtwatch/beside.py" cmtwatch || complain "beside a command"
exit $failed
