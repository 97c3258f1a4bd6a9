"""terminal.py COMMAND...: runs it on a terminal of its own, presses Ctrl-C when it has said "ready", or what the variable
PRESS_AFTER has, and says what it said and how it ended."""

import os
import pty
import sys

child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
said = b''
pressed = False
while True:
    try:
        some = os.read(terminal, 4096)
    except OSError:  # the last process has closed it
        break
    if not some:
        break
    said += some
    if os.environ.get('PRESS_AFTER', 'ready').encode() in said and not pressed:
        os.write(terminal, b'\x03')
        pressed = True
print(said.decode().replace('\r', ''), end='')
print('status', os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
