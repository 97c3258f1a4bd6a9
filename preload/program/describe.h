/// What a trace says before its first event: the program and its command line.
#pragma once

#include "preload/protocol.h"

void describe(struct Control* control);
