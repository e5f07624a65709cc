// Replacements for calls that only Linux has: compiled instead of system.c, spawn.c and confine.c in a build with
// MOULT_PORTABLE=1. ENOSYS means that a call has no replacement; MoultFiles refuses operations that need such a call.
#include "CLinux.h"
#include <string.h>

static int none(void) {
    errno = ENOSYS;
    return -1;
}

long moult_syscall(long number, long a, long b, long c, long d) {
    (void)number, (void)a, (void)b, (void)c, (void)d;
    return none();
}

// Without flags, this is renameat. With MOULT_RENAME_NOREPLACE, a file first gets the new name as a second link, so that an
// existing file is never replaced; a directory can at worst replace an empty directory. Exchanging two files is not supported.
int moult_renameat2(int from, const char *old, int to, const char *new_, unsigned flags) {
    struct stat facts;
    if (flags == 0) return renameat(from, old, to, new_);
    if (flags != MOULT_RENAME_NOREPLACE) return none();
    if (fstatat(from, old, &facts, AT_SYMLINK_NOFOLLOW) != 0) return -1;
    if (!S_ISDIR(facts.st_mode)) return linkat(from, old, to, new_, 0) != 0 ? -1 : unlinkat(from, old, 0);
    if (fstatat(to, new_, &facts, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return -1;
    }
    return renameat(from, old, to, new_);
}

// Sharing blocks is not supported, so the caller copies the file.
int moult_clone(int to, int from) {
    (void)to, (void)from;
    errno = EOPNOTSUPP;
    return -1;
}

// Does nothing: early writeback only improves speed, and the file is synced later anyway.
int moult_start_writeback(int fd, off64_t offset, off64_t length) {
    (void)fd, (void)offset, (void)length;
    return 0;
}

int moult_fstat_call(int fd, moult_stat *out) { return fstat(fd, out); }

// Like the F_OFD_* locks that they replace, flock locks belong to the open file. `moult_is_locked` briefly takes a lock, so a
// reader tries more than once.
int moult_lock_for_reading(int fd) {
    for (int left = 200;; left--) {
        if (flock(fd, LOCK_SH | LOCK_NB) == 0) return 0;
        if (errno != EWOULDBLOCK || left == 0) return -1;
        struct timespec moment = {0, 1000000};
        nanosleep(&moment, NULL);
    }
}

int moult_unlock_reading(int fd) { return flock(fd, LOCK_UN); }

int moult_is_locked(int fd) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return flock(fd, LOCK_UN);
    return errno == EWOULDBLOCK ? 1 : -1;
}

int moult_pipe(int ends[2]) {
    if (pipe(ends) != 0) return -1;
    // A program started between these calls would inherit the ends, but this build starts no programs.
    return fcntl(ends[0], F_SETFD, FD_CLOEXEC) != 0 || fcntl(ends[1], F_SETFD, FD_CLOEXEC) != 0 ? -1 : 0;
}

// Reports a directory as the root of a mount if it is on a different device than its parent directory. Never reports a file.
int moult_is_mount_root(const char *path) {
    struct stat facts, above;
    char parent[4096];
    if (lstat(path, &facts) != 0) return -1;
    if (!S_ISDIR(facts.st_mode)) return 0;
    if (snprintf(parent, sizeof parent, "%s/..", path) >= (int)sizeof parent) return 2;
    if (stat(parent, &above) != 0) return -1;
    return facts.st_dev != above.st_dev || facts.st_ino == above.st_ino;
}

// Returns 1, because creation times are not read.
int moult_birth(const char *path, int64_t *seconds, uint32_t *nanoseconds) {
    struct stat facts;
    (void)seconds, (void)nanoseconds;
    return stat(path, &facts) != 0 ? -1 : 1;
}

// Of the attributes of a file, this build supports only owner, group and mode.
static int unsupported(void) {
    errno = EOPNOTSUPP;
    return -1;
}
long moult_listxattr(const char *path, void *names, size_t size) {
    (void)path, (void)names, (void)size;
    return unsupported();
}
long moult_getxattr(const char *path, const char *name, void *value, size_t size) {
    (void)path, (void)name, (void)value, (void)size;
    return unsupported();
}
int moult_setxattr(const char *path, const char *name, const void *value, size_t size) {
    (void)path, (void)name, (void)value, (void)size;
    return unsupported();
}
int moult_removexattr(const char *path, const char *name) {
    (void)path, (void)name;
    return unsupported();
}

// --- child processes and their confinement: none

int moult_socket_pair(int ends[2]) {
    (void)ends;
    return none();
}
int moult_pidfd_open(pid_t pid) {
    (void)pid;
    return none();
}
int moult_pidfd_signal(int fd, int signal) {
    (void)fd, (void)signal;
    return none();
}
int moult_has_ended(pid_t pid) {
    (void)pid;
    return none();
}
int moult_memfd(void) { return none(); }
int moult_memfd_sealable(void) { return none(); }
int moult_seal_memfd(int fd) {
    (void)fd;
    return none();
}
ssize_t moult_write_quietly(int fd, const void *bytes, size_t count) {
    (void)fd, (void)bytes, (void)count;
    return none();
}
int moult_is_single_threaded(void) { return 0; }

int moult_landlock_version(void) { return -1; }
int moult_landlock_create(uint64_t files, uint64_t network, uint64_t scopes) {
    (void)files, (void)network, (void)scopes;
    return none();
}
int moult_landlock_allow(int ruleset, int file, uint64_t access) {
    (void)ruleset, (void)file, (void)access;
    return none();
}
int moult_has_seccomp(void) { return 0; }
int moult_drop_capabilities(uint64_t kept) {
    (void)kept;
    return none();
}
int moult_confine(const moult_confinement *how) {
    (void)how;
    none();
    return MOULT_PART_PRIVILEGES;
}
pid_t moult_start(const moult_child *what, pid_t *group, int *is_read_only, moult_child_failure *failure) {
    (void)what, (void)group, (void)is_read_only;
    *failure = (moult_child_failure){MOULT_PART_PROGRAM, ENOSYS};
    return none();
}
