"""interrupted_check.py PROGRAM: a signal handler interrupts an event after each instruction of the tracer, and never
returns. It leaves by longjmp, or it makes events and the program is killed in it. The event's place in the ring may then
never be filled. Later events are in the trace nevertheless. Where the program goes on for longer than the ring lasts, the
trace ends there, and one line reports it.

With stacks an event has some thousand instructions: each 31st is interrupted. Without CMT_DAILY each 4th is, and the
handler is killed after each 8th.

What a handler asks for while the real function is at work is an event of its own.
"""

import os
import subprocess
import sys

from await_closed import await_closed

IS_DAILY = bool(os.environ.get('CMT_DAILY'))
STRIDE = 31 if os.environ.get('CMTTRACE_STACKS') else 1 if IS_DAILY else 4
STRIDE_OF_KILLS = STRIDE if IS_DAILY else max(STRIDE, 8)
HELD_UP = 'libcmttrace: an event was interrupted and did not go on; the program goes on untraced\n'
held_up = []


def later_events(program, event, then, step):
    """Whether the trace has the two that came later, or None where the event had ended before."""
    path = f'{event}.{then}.{step}.trace'
    environment = dict(os.environ, LD_PRELOAD=os.environ['TRACER'], CMTTRACE_OUT=path)
    process = subprocess.Popen([program, event, then, str(step)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = process.stdout.read(1)
    if then == 'kill' and said == b'+':
        process.kill()
    status = process.wait()
    lines = process.stderr.read().decode()
    process.stdout.close()
    process.stderr.close()
    assert lines == (HELD_UP if then == 'run' and lines else ''), f'{path}: {lines}'
    held_up.append(lines != '')
    await_closed(path)
    with open(path, encoding='utf-8') as file:
        lines = file.read().splitlines()
    os.remove(path)
    assert said in (b'+', b'.'), f'{path}: exit {status}'
    assert status == (-9 if then == 'kill' and said == b'+' else 0), f'{path}: exit {status}'
    if said == b'.':
        return None
    found = [sum(line.startswith(f'malloc({size}) = ') for line in lines) for size in (50002, 50003)]
    assert found in ([1, 1], [0, 0]), f'{path}: {found}'
    return found == [1, 1]


def check(program, event, then):
    seen, step = [], 0
    stride = STRIDE_OF_KILLS if then == 'kill' else STRIDE
    while (found := later_events(program, event, then, step)) is not None:
        seen.append(found)
        step += stride
    lost = [turn * stride for turn in range(len(seen)) if not seen[turn]]
    assert not lost, f'{event}, {then}: lost after instructions {lost} of {step}'
    assert step > 80, f'{event}, {then}: {len(seen)} instructions'
    return len(seen)


if __name__ == '__main__':
    runs = sum(check(sys.argv[1], *which) for which in (('malloc', 'kill'), ('malloc', 'jump'), ('calloc', 'kill')))
    for step in range(0, 200, 3) if STRIDE == 1 else ():
        if later_events(sys.argv[1], 'malloc', 'run', step) is None:
            break
    assert STRIDE != 1 or (True in held_up and False in held_up)
    print(f'{runs} interruptions, and no later event lost')
