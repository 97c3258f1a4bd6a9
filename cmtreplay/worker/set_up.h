#pragma once

#include "runner.h"

/* The region of control, or NULL. */
struct control* map_control(int fd);

/* Maps what the control names. Where that fails, control->setup_errno says why. */
void set_up(struct replay* replay, struct control* control);
