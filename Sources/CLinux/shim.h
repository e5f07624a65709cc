// What Linux has and Swift's Glibc module does not bring: variadic calls and macros that are not plain constants.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

// errno is a macro over a function.
static inline int moult_errno(void) { return errno; }
static inline void moult_set_errno(int value) { errno = value; }

// open is variadic.
static inline int moult_openat(int dir, const char *path, int flags, mode_t mode) { return openat(dir, path, flags, mode); }

// glibc 2.36 declares renameat2 only under _GNU_SOURCE, which Swift's importer does not set.
static inline int moult_renameat2(int from, const char *old, int to, const char *new_, unsigned flags) {
    return (int)syscall(SYS_renameat2, from, old, to, new_, flags);
}
#define MOULT_RENAME_NOREPLACE 1u
#define MOULT_RENAME_EXCHANGE 2u

// fcntl is variadic.
static inline int moult_fcntl_int(int fd, int command, int argument) { return fcntl(fd, command, argument); }
#define MOULT_F_SETSIG 10
#define MOULT_F_SETLEASE 1024
#define MOULT_F_GETLEASE 1025

// _IOW macros are not imported; ioctl is variadic. FICLONE shares the blocks of one file with another (XFS, btrfs).
static inline int moult_clone(int to, int from) { return ioctl(to, _IOW(0x94, 9, int), from); }

// The wait macros are function-like.
static inline int moult_exited(int status) { return WIFEXITED(status); }
static inline int moult_exit_status(int status) { return WEXITSTATUS(status); }
static inline int moult_signaled(int status) { return WIFSIGNALED(status); }
static inline int moult_term_signal(int status) { return WTERMSIG(status); }

// ioctl(TIOCGWINSZ): the width of the terminal, 0 if it has none.
static inline int moult_terminal_columns(int fd) {
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// sync_file_range and O_PATH-like flags are behind _GNU_SOURCE.
static inline int moult_start_writeback(int fd, off64_t offset, off64_t length) {
    return (int)syscall(SYS_sync_file_range, fd, offset, length, 2 /* SYNC_FILE_RANGE_WRITE */);
}

// stat, statvfs and flock are each the name of a struct and of a function, which Swift cannot tell apart.
typedef struct stat moult_stat;
typedef struct statvfs moult_statvfs;
static inline int moult_fstat_call(int fd, moult_stat *out) { return fstat(fd, out); }
static inline int moult_lstat_call(const char *path, moult_stat *out) { return lstat(path, out); }
static inline int moult_stat_call(const char *path, moult_stat *out) { return stat(path, out); }
static inline int moult_statvfs_call(const char *path, moult_statvfs *out) { return statvfs(path, out); }
static inline int moult_flock_call(int fd, int operation) { return flock(fd, operation); }
static inline int moult_fallocate(int fd, off64_t size) { return (int)syscall(SYS_fallocate, fd, 0, 0L, size); }

// pipe2 is behind _GNU_SOURCE.
static inline int moult_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

// These have no or late wrappers in glibc.
static inline int moult_pidfd_open(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }
static inline int moult_memfd(void) { return (int)syscall(SYS_memfd_create, "moult", 1u /* MFD_CLOEXEC */); }

// Neither does <spawn.h> show these without it, and including it here would define fd_set unlike other modules do.
extern int moult_spawn_addchdir(void *actions, const char *path) __asm__("posix_spawn_file_actions_addchdir_np");
extern int moult_spawn_addclosefrom(void *actions, int from) __asm__("posix_spawn_file_actions_addclosefrom_np");

// O_PATH is behind _GNU_SOURCE.
#define MOULT_O_PATH 010000000

// statx is behind _GNU_SOURCE, too. 1 if the path is the root of a mount, 0 if it is not, 2 if the kernel does not say.
static inline int moult_is_mount_root(const char *path) {
    uint64_t facts[32] = {0};  // struct statx: 256 bytes; stx_attributes at byte 8, stx_attributes_mask at byte 56
    const uint64_t mount_root = 0x2000;
    if (syscall(SYS_statx, AT_FDCWD, path, 0x100 /* AT_SYMLINK_NOFOLLOW */, 0u, facts) != 0) return -1;
    if ((facts[7] & mount_root) == 0) return 2;
    return (facts[1] & mount_root) != 0;
}

// When a file was created: seconds and nanoseconds; 1 if the file system does not say.
static inline int moult_birth(const char *path, int64_t *seconds, uint32_t *nanoseconds) {
    uint64_t facts[32] = {0};  // stx_mask at byte 0, stx_btime at byte 80
    if (syscall(SYS_statx, AT_FDCWD, path, 0u, 0x800u /* STATX_BTIME */, facts) != 0) return -1;
    if ((facts[0] & 0x800u) == 0) return 1;
    *seconds = (int64_t)facts[10];
    *nanoseconds = (uint32_t)facts[11];
    return 0;
}

// <sys/xattr.h> would define fd_set unlike other modules do.
static inline long moult_listxattr(const char *path, void *names, size_t size) { return syscall(SYS_listxattr, path, names, size); }
static inline long moult_getxattr(const char *path, const char *name, void *value, size_t size) {
    return syscall(SYS_getxattr, path, name, value, size);
}
static inline int moult_setxattr(const char *path, const char *name, const void *value, size_t size) {
    return (int)syscall(SYS_setxattr, path, name, value, size, 0);
}
static inline int moult_removexattr(const char *path, const char *name) { return (int)syscall(SYS_removexattr, path, name); }
