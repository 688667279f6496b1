/* help.h - texts made from the command table: help, the manual page, completion scripts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct buf;
struct cli_command;

/* "sandbox show ID [--track TRACK]": operands and needed options; if has_optional, also those that may be left out. */
void help_add_usage(struct buf *b, const struct cli_command *c, bool has_optional);

/* All commands, variables, exit codes. Here and below: in lines of at most `width` characters; 0: of any length. */
void help_all(FILE *out, size_t width);

/* What the exit codes mean. */
void help_exit_codes(FILE *out);

/* One command. */
void help_one(FILE *out, const struct cli_command *c, size_t width);

/* The command that the words name, or all of a noun's. False when there is none. */
bool help_command(FILE *out, const char *const *words, size_t count, size_t width);

/* The manual page in man(7) format. */
void help_man(FILE *out);

/* The completion script of "bash" or "zsh". False for another shell. */
bool help_completion(FILE *out, const char *shell);
