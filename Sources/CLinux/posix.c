// POSIX calls in a form that Swift can use, for every build.
#include "CLinux.h"
#include <sys/ioctl.h>
#include <sys/resource.h>

int moult_errno(void) { return errno; }
void moult_set_errno(int value) { errno = value; }

int moult_openat(int dir, const char *path, int flags, mode_t mode) { return openat(dir, path, flags, mode); }

int moult_fcntl_int(int fd, int command, int argument) { return fcntl(fd, command, argument); }

off_t moult_seek_data(int fd, off_t offset) { return lseek(fd, offset, SEEK_DATA); }
off_t moult_seek_hole(int fd, off_t offset) { return lseek(fd, offset, SEEK_HOLE); }

int moult_exited(int status) { return WIFEXITED(status); }
int moult_exit_status(int status) { return WEXITSTATUS(status); }
int moult_term_signal(int status) { return WTERMSIG(status); }

int moult_terminal_columns(int fd) {
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// Returns whether the size of files that this process writes is limited (ulimit -f).
int moult_has_file_size_limit(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

int moult_statvfs_call(const char *path, moult_statvfs *out) { return statvfs(path, out); }
int moult_flock_call(int fd, int operation) { return flock(fd, operation); }
