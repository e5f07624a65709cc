// SQLite's public API, with the parts that its header hides behind feature macros.
#pragma once
// Debian builds SQLite with these; without the macros its header does not declare the session functions.
#define SQLITE_ENABLE_SESSION 1
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include <sqlite3.h>

// SQLITE_TRANSIENT is a cast of -1 to a function pointer, which Swift cannot import.
static inline sqlite3_destructor_type moult_sqlite_transient(void) { return SQLITE_TRANSIENT; }

// sqlite3_db_config is variadic; every switch that we set takes (int, int *).
static inline int moult_sqlite_db_config(sqlite3 *db, int op, int on, int *now) {
    return sqlite3_db_config(db, op, on, now);
}
