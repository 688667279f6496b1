/* lambda.h - the guard as a function of AWS Lambda: the same program, run only while it is asked something. */
#pragma once

#include <stdbool.h>

struct buf;
struct config;

/* Is this process such a function, by the name of its program and its environment? */
bool lambda_is_meant(const char *program);

/* Answers invocations for as long as there are any. problems: what is wrong with the settings so far, one a line;
 * then, or when it cannot begin, the runtime is told, and the answer is the exit code. has_folder: a store in a
 * folder was asked for by name, which is for tests: what is in a function's files is lost. */
int lambda_run(struct config *c, struct buf *problems, bool has_folder);
