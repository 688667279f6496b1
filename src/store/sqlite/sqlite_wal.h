/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_wal.h - how SQLite's log is written; the why is in sqlite_wal.c. */
#pragma once

/* The name of the file system to open a connection with that writes. */
const char *sqlite_wal_vfs(void);
