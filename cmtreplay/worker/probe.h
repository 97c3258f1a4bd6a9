#pragma once

/* Says where malloc and the other calls come from, and which objects are loaded. Returns an exit status. */
int probe(void);
