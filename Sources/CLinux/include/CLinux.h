// System calls that Swift's Glibc module lacks, and child processes that are confined from their first instruction on.
// Debian's headers are older than many kernels, so missing constants are defined here.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#endif
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// --- the start of the process: start.c

// The command line, including the program's name. These functions also work without /proc.
int moult_argument_count(void);
const char *moult_argument(int index);
// Returns the path with which this program was executed; empty if the kernel did not pass it.
const char *moult_program_path(void);

// --- descriptors of databases: databases.c

// Open and close a file for SQLite. A descriptor is not closed while SQLite has another one of the same file open, because that
// would drop the locks of all threads. The open also refuses pipes.
int moult_database_open(const char *path, int flags, int mode);
int moult_database_close(int fd);
// Do the same for all other code. The open uses a descriptor that was kept, if one exists.
int moult_open_file(int directory, const char *path, int flags, mode_t mode);
int moult_close_file(int fd);
// Treats the files that this process has open now as open in SQLite: an app may have opened databases before.
void moult_note_open_files(void);
// Returns how often this process, or an ancestor since its start, was forked: a child has another number than its parent.
int moult_fork_count(void);

// --- system calls: system.c

// errno is a macro that calls a function, so Swift does not import it.
int moult_errno(void);
void moult_set_errno(int value);

// open, fcntl and syscall are variadic, so Swift does not import them.
int moult_openat(int dir, const char *path, int flags, mode_t mode);
int moult_fcntl_int(int fd, int command, int argument);
long moult_syscall(long number, long a, long b, long c, long d);
#define MOULT_F_SETSIG 10
#define MOULT_F_SETLEASE 1024
#define MOULT_F_GETLEASE 1025
#define MOULT_O_PATH 010000000

// glibc 2.36 declares renameat2 only under _GNU_SOURCE, which Swift's importer does not set.
int moult_renameat2(int from, const char *old, int to, const char *new_, unsigned flags);
#define MOULT_RENAME_NOREPLACE 1u
#define MOULT_RENAME_EXCHANGE 2u

// Shares the blocks of one file with another: FICLONE, on XFS and btrfs.
int moult_clone(int to, int from);
// Starts writeback of a part of a file, without waiting for it to finish.
int moult_start_writeback(int fd, off64_t offset, off64_t length);

// Swift does not import the macros for wait statuses, because they take an argument.
int moult_exited(int status);
int moult_exit_status(int status);
int moult_term_signal(int status);

// Returns the width of the terminal in columns; 0 if fd is not a terminal.
int moult_terminal_columns(int fd);

// stat, statvfs and flock are each the name of both a struct and a function, which Swift cannot tell apart.
typedef struct stat moult_stat;
typedef struct statvfs moult_statvfs;
int moult_fstat_call(int fd, moult_stat *out);
// The next byte at or after the offset that is not in a hole, and the start of the next hole.
off_t moult_seek_data(int fd, off_t offset);
off_t moult_seek_hole(int fd, off_t offset);
int moult_has_file_size_limit(void);
int moult_statvfs_call(const char *path, moult_statvfs *out);
int moult_flock_call(int fd, int operation);
// Locks on a whole file that belong to the open file, not to the process (F_OFD_*). The first function takes a read lock
// without waiting, the second releases it, and the third returns 1 if another open file has a lock.
int moult_lock_for_reading(int fd);
int moult_unlock_reading(int fd);
int moult_is_locked(int fd);

// Creates a pipe, or a pair of connected sockets. Programs that this process starts do not inherit them.
int moult_pipe(int ends[2]);
int moult_socket_pair(int ends[2]);
// Opens a descriptor that becomes readable when a process ends. Fails with ENOSYS before Linux 5.3 and under valgrind; then
// ask `moult_has_ended` every MOULT_END_INTERVAL milliseconds.
int moult_pidfd_open(pid_t pid);
// Sends a signal to the process to which such a descriptor refers.
int moult_pidfd_signal(int fd, int signal);
#define MOULT_END_INTERVAL 20
// Returns whether a child process has ended, without reaping it; -1 on error.
int moult_has_ended(pid_t pid);
// Creates an in-memory file.
int moult_memfd(void);
// Creates an in-memory file that can be sealed and executed, on old and new kernels.
int moult_memfd_sealable(void);
int moult_seal_memfd(int fd);

// Returns 1 if the path is the root of a mount, 0 if not, 2 if the system does not report it, and -1 on error.
int moult_is_mount_root(const char *path);
// Gets the creation time of a file. Returns 1 if the file system does not record it, and -1 on error.
int moult_birth(const char *path, int64_t *seconds, uint32_t *nanoseconds);

// Declared here because <sys/xattr.h> would define fd_set differently from other modules.
long moult_listxattr(const char *path, void *names, size_t size);
long moult_getxattr(const char *path, const char *name, void *value, size_t size);
int moult_setxattr(const char *path, const char *name, const void *value, size_t size);
int moult_removexattr(const char *path, const char *name);

// Writes to a pipe. If its read end is closed, fails with EPIPE instead of ending this process with a signal.
ssize_t moult_write_quietly(int fd, const void *bytes, size_t count);
// Returns whether this process has only one thread.
int moult_is_single_threaded(void);

// --- Landlock and seccomp: confine.c

// Returns the version of Landlock in the kernel; a negative number if the kernel does not enforce Landlock.
int moult_landlock_version(void);
int moult_landlock_create(uint64_t files, uint64_t network, uint64_t scopes);
int moult_landlock_allow(int ruleset, int file, uint64_t access);

// Returns whether the kernel can filter system calls.
int moult_has_seccomp(void);

typedef struct {
    int resource;
    uint64_t soft, hard;
} moult_limit;

typedef struct {
    int ruleset;  // -1 for none
    const void *filter;  // `struct sock_filter`s
    int filter_count;    // 0 for none
    const moult_limit *limits;
    int limit_count;
    uint64_t capabilities;  // the capabilities to keep, one bit each
} moult_confinement;

// Permanently drops all capabilities except those in `kept`, one bit each. Returns 0 or -1; calls nothing that is unsafe after
// fork.
int moult_drop_capabilities(uint64_t kept);

// Confines this thread and its children permanently: limits, capabilities, no new privileges, Landlock, seccomp. Returns 0,
// or the part that failed: MOULT_PART_LIMITS to MOULT_PART_SECCOMP. Calls nothing that is unsafe after fork.
int moult_confine(const moult_confinement *how);

// --- child processes: spawn.c

enum {
    MOULT_PART_LIMITS = 1,
    MOULT_PART_PRIVILEGES,
    MOULT_PART_LANDLOCK,
    MOULT_PART_SECCOMP,
    MOULT_PART_DESCRIPTORS,
    MOULT_PART_DIRECTORY,
    MOULT_PART_PROGRAM,
    MOULT_PART_MOUNTS,
    MOULT_PART_GROUP,
    MOULT_PART_STARTED,  // no failure: `code` is the ID of a supervised group
};

#define MOULT_MOST_FILES 3

typedef struct {
    const char *program;  // a path; null to run `executable`
    int executable;       // the descriptor of an open file
    int is_script;        // whether to keep `executable` open as descriptor 3, for its interpreter
    char *const *arguments;
    char *const *environment;
    const char *directory;  // null for this process's directory
    int input, output, errors;
    int files[MOULT_MOST_FILES];  // open files that the program gets as descriptors 3 and up
    int file_count;
    int is_group;  // whether the program gets its own process group
    int dies_with_parent;  // whether the program is killed when the thread that started it ends
    int lifeline;  // -1, or one end of a socket pair: a supervisor kills the group when the other end is closed
    int mounts_read_only;  // whether all mounts but the directory are read-only, where the system allows it
    const moult_confinement *confinement;  // null for none
} moult_child;

typedef struct {
    int part;  // the part that failed
    int code;  // errno
} moult_child_failure;

// Starts a program and returns its process ID. On failure, returns -1 and sets `failure`. Sets `is_read_only` if the program's
// mounts are read-only. posix_spawn does not support everything that must happen between fork and exec.
//
// With a lifeline, the returned ID is the supervisor's, and `group` is the program's. Each byte sent through the other end is
// the number of a signal for the group. When the program has ended, and all processes that it started are killed and reaped,
// the supervisor sends the program's status and ends.
pid_t moult_start(const moult_child *what, pid_t *group, int *is_read_only, moult_child_failure *failure);
