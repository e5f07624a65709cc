// Starting the executable of a step: from a sealed copy in memory, confined, and never longer there than who started it.
#pragma once
#include "guard.h"
#include <time.h>

// A file in memory whose content can be sealed, and that may be executed where kernels ask for that to be said.
static inline int moult_memfd_sealable(void) {
    int fd = (int)syscall(SYS_memfd_create, "moult-step", 0x13u /* CLOEXEC, ALLOW_SEALING, EXEC */);
    return fd >= 0 || errno != EINVAL ? fd : (int)syscall(SYS_memfd_create, "moult-step", 3u);
}
static inline int moult_seal_memfd(int fd) { return fcntl(fd, 1033 /* F_ADD_SEALS */, 15 /* SEAL, SHRINK, GROW, WRITE */); }

// write to a pipe whose reader may be gone: an error, and no signal that could end this process.
static inline ssize_t moult_write_quietly(int fd, const void *bytes, size_t count) {
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

typedef struct {
    int program;    // the sealed copy
    int is_script;  // its interpreter opens it once more: it stays open, as descriptor 3
    char *const *arguments;
    char *const *environment;
    const char *directory;
    int mounts_read_only;  // everything but that directory, if the system lets us
    int input, output, errors;
    int lifeline;  // the reading end of a pipe that only this process could write to
    moult_confinement confinement;
} moult_step;

typedef struct {
    int part;  // as of moult_confine; 5 descriptors, 6 directory, 7 the program itself, 8 mounts, 9 who started it
    int code;  // 0 for part 8: the mounts are read-only
} moult_step_said;

// A view of all mounts of its own in which nothing but the directory can be written; 1 if the system does not let us.
static inline int moult_mount_read_only(const char *directory) {
    struct {
        uint64_t set, clear, propagation, user_namespace;
    } read_only = {1, 0, 0, 0}, writable = {0, 1, 0, 0};
    if (syscall(SYS_unshare, 0x00020000 /* CLONE_NEWNS */) != 0) return 1;
    if (syscall(SYS_mount, NULL, "/", NULL, 0x44000 /* MS_REC | MS_PRIVATE */, NULL) != 0) return 1;
    if (syscall(SYS_mount, directory, directory, NULL, 0x1000 /* MS_BIND */, NULL) != 0) return 1;
    if (syscall(442 /* mount_setattr */, AT_FDCWD, "/", 0x8000 /* AT_RECURSIVE */, &read_only, sizeof read_only) != 0)
        return 1;
    return syscall(442, AT_FDCWD, directory, 0, &writable, sizeof writable) != 0 ? -1 : 0;
}

// In the child: calls nothing that is unsafe after fork, and does not come back.
static inline void moult_become_step(const moult_step *what, pid_t parent, int report) {
    int part = 9;
    moult_usual_signals();
    // It ends with the thread that waits for it, and with all that it has started with this process.
    if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) goto failed;
    part = 5;
    int safe[] = {report, what->program, what->lifeline, what->confinement.ruleset, what->input, what->output, what->errors};
    for (int i = 0; i < 7; i++)
        if (safe[i] >= 0 && (safe[i] = fcntl(safe[i], F_DUPFD_CLOEXEC, 10)) < 0) goto failed;
    report = safe[0];
    if (dup2(safe[4], 0) < 0 || dup2(safe[5], 1) < 0 || dup2(safe[6], 2) < 0) goto failed;
    moult_close_others_on_exec();
    if (what->is_script && dup2(safe[1], 3) < 0) goto failed;
    // When nobody can write to the pipe any more, the kernel kills the whole group.
    if (dup2(safe[2], 4) < 0 || fcntl(4, F_SETOWN, -getpid()) != 0 || fcntl(4, 10 /* F_SETSIG */, SIGKILL) != 0
        || fcntl(4, F_SETFL, O_ASYNC | O_NONBLOCK) != 0)
        goto failed;
    if (what->mounts_read_only) {
        part = 8;
        int refused = moult_mount_read_only(what->directory);
        if (refused < 0) goto failed;
        moult_step_said done = {8, 0};
        if (refused == 0 && write(report, &done, sizeof done) < 0) goto failed;
    }
    part = 6;
    if (chdir(what->directory) != 0) goto failed;
    moult_confinement confinement = what->confinement;
    confinement.ruleset = safe[3];
    part = moult_confine(&confinement);
    if (part != 0) goto failed;
    part = 7;
    syscall(SYS_execveat, what->is_script ? 3 : safe[1], "", what->arguments, what->environment, 0x1000 /* AT_EMPTY_PATH */);
failed:;
    moult_step_said said = {part, errno};
    // Nobody else can be told if this fails.
    if (write(report, &said, sizeof said) < 0) _exit(126);
    _exit(127);
}

// Negative, with what failed, if the program did not begin; says whether its mounts are read-only.
static inline pid_t moult_start_step(const moult_step *what, int *is_read_only, moult_step_said *failure) {
    int report[2];
    *is_read_only = 0;
    *failure = (moult_step_said){0, 0};
    if (pipe2(report, O_CLOEXEC) != 0) {
        *failure = (moult_step_said){5, errno};
        return -1;
    }
    // No handler of this program's may run in the child.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) moult_become_step(what, parent, report[1]);
    int code = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    if (child < 0) *failure = (moult_step_said){5, code};
    while (child >= 0) {
        moult_step_said said;
        ssize_t count = read(report[0], &said, sizeof said);
        if (count < 0 && errno == EINTR) continue;
        if (count != sizeof said) break;
        if (said.part == 8 && said.code == 0) {
            *is_read_only = 1;
            continue;
        }
        *failure = said;
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
        child = -1;
    }
    close(report[0]);
    return child;
}
