/* serve.h - the server process: puts everything together, runs until it is told to stop. */
#pragma once

#include <stdbool.h>

struct config;

/* Returns the process's exit code. */
int serve(struct config *config, bool is_dev);
