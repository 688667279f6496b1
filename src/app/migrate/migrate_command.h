/* migrate_command.h - `leasehold migrate ...`: from the upstream broker or an Innovation Sandbox to here, and back. */
#pragma once

struct cli_args;
struct config;

/* Returns the process's exit code. */
int migrate_command(const struct cli_args *args, struct config *c);
