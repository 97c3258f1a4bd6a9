/// CMTTRACE_…, checked before anything is recorded: a limit with a slip of the pen must not be none.
#pragma once

#include <stdbool.h>

/// Whether the variable has this value.
bool environment_says(const char* name, const char* value);

/// A line about the first variable that cannot be understood, or NULL.
const char* environment_fault(void);
