/* store_command.h - `leasehold store ...`: what looks after the stored data. */
#pragma once

struct cli_args;
struct config;
struct err;

/* Returns the process's exit code. */
int store_command(const struct cli_args *args, struct config *c);

/* Says why on standard error; returns the exit code for it. */
int store_report(const struct err *e);
