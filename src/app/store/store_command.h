/* store_command.h - `leasehold store ...`: what looks after the stored data. */
#pragma once

struct cli_args;
struct config;

/* Returns the process's exit code. */
int store_command(const struct cli_args *args, struct config *c);
