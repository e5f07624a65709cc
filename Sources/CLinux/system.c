// Calls that only Linux has. The portable build compiles their replacements in portable.c instead of this file.
#include "CLinux.h"
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>

long moult_syscall(long number, long a, long b, long c, long d) { return syscall(number, a, b, c, d); }

int moult_renameat2(int from, const char *old, int to, const char *new_, unsigned flags) {
    return (int)syscall(SYS_renameat2, from, old, to, new_, flags);
}

int moult_clone(int to, int from) { return ioctl(to, _IOW(0x94, 9, int), from); }

int moult_start_writeback(int fd, off64_t offset, off64_t length) {
    return (int)syscall(SYS_sync_file_range, fd, offset, length, 2 /* SYNC_FILE_RANGE_WRITE */);
}

// The C library implements fstat with a system call that takes a path, which a confined process may not make.
int moult_fstat_call(int fd, moult_stat *out) { return (int)syscall(SYS_fstat, fd, out); }
int moult_lock_for_reading(int fd) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &lock);
}

int moult_unlock_reading(int fd) {
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &lock);
}

int moult_is_locked(int fd) {
    // Asks which lock conflicts with a write lock, without taking one, so fd may be read-only. Every lock conflicts with it.
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &lock) ? -1 : lock.l_type != F_UNLCK;
}

int moult_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }
int moult_socket_pair(int ends[2]) { return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends); }

int moult_pidfd_open(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }
int moult_pidfd_signal(int fd, int signal) { return (int)syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0); }
int moult_memfd(void) { return (int)syscall(SYS_memfd_create, "moult", 1u /* MFD_CLOEXEC */); }

int moult_is_mount_root(const char *path) {
    uint64_t facts[32] = {0};  // struct statx: 256 bytes; stx_attributes at byte 8, stx_attributes_mask at byte 56
    const uint64_t mount_root = 0x2000;
    if (syscall(SYS_statx, AT_FDCWD, path, 0x100 /* AT_SYMLINK_NOFOLLOW */, 0u, facts) != 0) return -1;
    if ((facts[7] & mount_root) == 0) return 2;
    return (facts[1] & mount_root) != 0;
}

int moult_birth(const char *path, int64_t *seconds, uint32_t *nanoseconds) {
    uint64_t facts[32] = {0};  // stx_mask at byte 0, stx_btime at byte 80
    if (syscall(SYS_statx, AT_FDCWD, path, 0u, 0x800u /* STATX_BTIME */, facts) != 0) return -1;
    if ((facts[0] & 0x800u) == 0) return 1;
    *seconds = (int64_t)facts[10];
    *nanoseconds = (uint32_t)facts[11];
    return 0;
}

long moult_listxattr(const char *path, void *names, size_t size) { return syscall(SYS_listxattr, path, names, size); }
long moult_getxattr(const char *path, const char *name, void *value, size_t size) {
    return syscall(SYS_getxattr, path, name, value, size);
}
int moult_setxattr(const char *path, const char *name, const void *value, size_t size) {
    return (int)syscall(SYS_setxattr, path, name, value, size, 0);
}
int moult_removexattr(const char *path, const char *name) { return (int)syscall(SYS_removexattr, path, name); }

int moult_memfd_sealable(void) {
    int fd = (int)syscall(SYS_memfd_create, "moult-step", 0x13u /* CLOEXEC, ALLOW_SEALING, EXEC */);
    return fd >= 0 || errno != EINVAL ? fd : (int)syscall(SYS_memfd_create, "moult-step", 3u);
}
int moult_seal_memfd(int fd) { return fcntl(fd, 1033 /* F_ADD_SEALS */, 15 /* SEAL, SHRINK, GROW, WRITE */); }

ssize_t moult_write_quietly(int fd, const void *bytes, size_t count) {
    sigset_t pipe, before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    ssize_t written = write(fd, bytes, count);
    int code = errno;
    if (written < 0 && code == EPIPE) {
        struct timespec now = {0, 0};
        sigtimedwait(&pipe, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = code;
    return written;
}

// The thread sanitizer, which `make test-sanitize` uses, starts a thread in each program.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SANITIZER_THREADS 1
#endif
#endif
#ifndef SANITIZER_THREADS
#define SANITIZER_THREADS 0
#endif

int moult_is_single_threaded(void) {
    struct stat tasks;
    // Every directory has two links of its own; this one has another for each thread.
    if (stat("/proc/self/task", &tasks) == 0) return tasks.st_nlink <= 3 + SANITIZER_THREADS;
    // Without /proc: the kernel refuses this call to a process with other threads, and otherwise changes nothing.
    return unshare(CLONE_THREAD) == 0;
}
