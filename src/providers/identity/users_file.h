/* users_file.h - people, roles and passwords from a file (docs/sign-in.md). */
#pragma once

#include "base/err.h"
#include "domain/ports/identity.h"
#include "domain/signin.h"

struct users_file;

enum { USERS_MAX = 10000, USERS_FILE_MAX = 4 * 1024 * 1024 };

/* Read the file; without a path there is nobody. RC_INVALID names the line and what would be right. */
MUST_CHECK enum rc identity_users_file_open(const char *path, struct users_file **ret, struct err *e);
void               users_file_close(struct users_file *f);

struct identity      *users_file_identity(struct users_file *f);
struct password_book *users_file_passwords(struct users_file *f);

/* Read the file again, if it has changed or always. On failure everybody stays; a bad file is reported once. Any
 * thread. */
MUST_CHECK enum rc users_file_refresh(struct users_file *f, bool always, struct err *e);
