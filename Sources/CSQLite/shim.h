// SQLite's public API, with the parts that its header hides behind feature macros.
#pragma once
// Debian builds SQLite with these macros; without them, the header does not declare the session functions.
#define SQLITE_ENABLE_SESSION 1
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// SQLITE_TRANSIENT is a cast of -1 to a function pointer, which Swift cannot import.
static inline sqlite3_destructor_type moult_sqlite_transient(void) { return SQLITE_TRANSIENT; }

// sqlite3_db_config is variadic; every switch that moult sets takes (int, int *).
static inline int moult_sqlite_db_config(sqlite3 *db, int op, int on, int *now) {
    return sqlite3_db_config(db, op, on, now);
}

// Replaces fchown in SQLite. Does nothing if the file already has this owner and group: the system call would change its ctime
// even then.
static inline int moult_fchown_if_other(int fd, uid_t owner, gid_t group) {
    struct stat now;
    if (fstat(fd, &now) == 0 && now.st_uid == owner && now.st_gid == group) return 0;
    return fchown(fd, owner, group);
}

// xSetSystemCall takes a pointer to a function without arguments, so each function needs a cast that Swift does not allow.
static inline int moult_sqlite_keep_ctime(void) {
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
    if (vfs == 0 || vfs->iVersion < 3) return SQLITE_NOTFOUND;
    return vfs->xSetSystemCall(vfs, "fchown", (sqlite3_syscall_ptr)moult_fchown_if_other);
}

// Replaces open and close in SQLite, for all connections of this process.
static inline int moult_sqlite_replace_open(int (*open)(const char *, int, int), int (*close)(int)) {
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
    if (vfs == 0 || vfs->iVersion < 3) return SQLITE_NOTFOUND;
    int code = vfs->xSetSystemCall(vfs, "close", (sqlite3_syscall_ptr)close);
    return code ? code : vfs->xSetSystemCall(vfs, "open", (sqlite3_syscall_ptr)open);
}
