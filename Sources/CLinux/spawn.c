#include "CLinux.h"
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

// In a child after fork: resets all signal handlers and unblocks all signals. A SIGHUP that the parent ignores, for example
// under nohup, stays ignored.
static void reset_signals(void) {
    for (int signal = 1; signal < 65; signal++) {
        struct sigaction usual = {.sa_handler = SIG_DFL}, before;
        if (signal == SIGHUP && sigaction(signal, NULL, &before) == 0 && before.sa_handler == SIG_IGN) continue;
        sigaction(signal, &usual, NULL);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

// Marks every descriptor except the first three to be closed when the program starts.
static void close_others_on_exec(void) {
    if (syscall(436 /* close_range */, 3u, ~0u, 4u /* CLOEXEC */) != 0)
        for (int fd = 3; fd < 4096; fd++) fcntl(fd, F_SETFD, FD_CLOEXEC);
}

// Gives the process its own mount namespace, in which only `directory` is writable. Returns 1 if the system does not allow
// that, and -1 if the directory cannot be made writable again.
static int mount_read_only(const char *directory) {
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

// Runs in the child. Calls nothing that is unsafe after fork, and does not return.
static void become(const moult_child *what, pid_t parent, int report) {
    moult_confinement confinement = {.ruleset = -1};
    if (what->confinement) confinement = *what->confinement;
    reset_signals();
    int part = MOULT_PART_GROUP;
    if (what->is_group && setpgid(0, 0) != 0) goto failed;
    if (what->dies_with_parent && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)) goto failed;
    part = MOULT_PART_DESCRIPTORS;
    int safe[] = {report, what->executable, confinement.ruleset, what->input, what->output, what->errors};
    for (int i = 0; i < 6; i++)
        if (safe[i] >= 0 && (safe[i] = fcntl(safe[i], F_DUPFD_CLOEXEC, 10)) < 0) goto failed;
    int files[MOULT_MOST_FILES];
    for (int i = 0; i < what->file_count; i++)
        if ((files[i] = fcntl(what->files[i], F_DUPFD_CLOEXEC, 10)) < 0) goto failed;
    report = safe[0];
    if (dup2(safe[3], 0) < 0 || dup2(safe[4], 1) < 0 || dup2(safe[5], 2) < 0) goto failed;
    close_others_on_exec();
    for (int i = 0; i < what->file_count; i++)
        if (dup2(files[i], 3 + i) < 0) goto failed;
    if (what->is_script && dup2(safe[1], 3) < 0) goto failed;
    if (what->mounts_read_only) {
        part = MOULT_PART_MOUNTS;
        int refused = mount_read_only(what->directory);
        if (refused < 0) goto failed;
        moult_child_failure done = {MOULT_PART_MOUNTS, 0};
        if (refused == 0 && write(report, &done, sizeof done) < 0) goto failed;
    }
    part = MOULT_PART_DIRECTORY;
    if (what->directory && chdir(what->directory) != 0) goto failed;
    if (what->confinement) {
        confinement.ruleset = safe[2];
        part = moult_confine(&confinement);
        if (part != 0) goto failed;
    }
    part = MOULT_PART_PROGRAM;
    if (what->program) {
        execve(what->program, what->arguments, what->environment);
    } else {
        int file = what->is_script ? 3 : safe[1];
        syscall(SYS_execveat, file, "", what->arguments, what->environment, 0x1000 /* AT_EMPTY_PATH */);
    }
failed:;
    moult_child_failure said = {part, errno};
    // If this fails, the error cannot be reported.
    if (write(report, &said, sizeof said) < 0) _exit(126);
    _exit(127);
}

// Closes every descriptor except `descriptor`, which becomes descriptor 3. Returns 3, or -1 on failure.
static int keep_only(int descriptor) {
    if (dup2(descriptor, 3) < 0) return -1;
    for (int standard = 0; standard < 3; standard++) close(standard);
    if (syscall(436 /* close_range */, 4u, ~0u, 0u) != 0)
        for (int other = 4; other < 65536; other++) close(other);
    return 3;
}

int moult_has_ended(pid_t pid) {
    siginfo_t ended = {.si_pid = 0};
    while (waitid(P_PID, pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0)
        if (errno != EINTR) return -1;
    return ended.si_pid != 0;
}

// Sends the group a signal for each byte from moult, until moult or the group's first process has ended. Then kills the whole
// group.
static void watch(pid_t group, int lifeline) {
    // Where this fails, `poll` ignores the descriptor, and the end of the process is found after a timeout.
    int end = (int)syscall(SYS_pidfd_open, group, 0);
    struct pollfd events[] = {{lifeline, POLLIN, 0}, {end, POLLIN, 0}};
    while (1) {
        int ready = poll(events, 2, end < 0 ? MOULT_END_INTERVAL : -1);
        if (ready < 0 && errno == EINTR) continue;
        if (ready < 0 || events[1].revents || (end < 0 && moult_has_ended(group) != 0)) break;
        if (ready == 0) continue;
        unsigned char signal;
        ssize_t count = read(lifeline, &signal, 1);
        if (count == 1) kill(-group, signal);
        if (count == 0 || (count < 0 && errno != EINTR)) break;
    }
    // No process can leave the group, so this kills every process that the program has started. The group's ID cannot have been
    // reused, because its first process has not been reaped yet.
    kill(-group, SIGKILL);
}

// Runs between moult and a program, and outlives both, so that none of the program's processes outlives moult. Waits for
// all processes that the program leaves behind, reports the program's status to moult, and ends.
static void supervise(const moult_child *what, int report) {
    pid_t own = getpid();
    int part = MOULT_PART_GROUP;
    // If the parent ignores SIGCHLD, this process inherits that and could not wait for its children. All signals stay blocked.
    signal(SIGCHLD, SIG_DFL);
    if (setpgid(0, 0) != 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) goto failed;
    // The child shares this memory until its program starts, which saves copying all page tables again.
    pid_t child = vfork();
    if (child == 0) become(what, own, report);
    if (child < 0) goto failed;
    moult_child_failure started = {MOULT_PART_STARTED, child};
    // If this fails, moult has ended, and `watch` would find the lifeline closed.
    if (write(report, &started, sizeof started) < 0) kill(-child, SIGKILL);
    int lifeline = keep_only(what->lifeline);
    // The program may be hostile and runs as the same user, so it must not be able to read or stop this process with ptrace.
    prctl(PR_SET_DUMPABLE, 0);
    if (lifeline < 0 || moult_drop_capabilities(0) != 0) kill(-child, SIGKILL);
    watch(child, lifeline);
    int status = SIGKILL;
    while (1) {
        int one;
        pid_t ended = waitpid(-1, &one, 0);
        if (ended < 0 && errno == EINTR) continue;
        if (ended < 0) break;
        if (ended == child) status = one;
    }
    // If moult has ended, the status is not needed.
    (void)!send(lifeline, &status, sizeof status, MSG_NOSIGNAL);
    _exit(0);
failed:;
    moult_child_failure said = {part, errno};
    (void)!write(report, &said, sizeof said);
    _exit(127);
}

pid_t moult_start(const moult_child *what, pid_t *group, int *is_read_only, moult_child_failure *failure) {
    int report[2];
    *is_read_only = 0;
    *group = 0;
    *failure = (moult_child_failure){0, 0};
    if (pipe2(report, O_CLOEXEC) != 0) {
        *failure = (moult_child_failure){MOULT_PART_DESCRIPTORS, errno};
        return -1;
    }
    // This process's signal handlers must not run in the child.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0 && what->lifeline >= 0) supervise(what, report[1]);
    if (child == 0) become(what, parent, report[1]);
    int code = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    if (child < 0) *failure = (moult_child_failure){MOULT_PART_DESCRIPTORS, code};
    while (child >= 0) {
        moult_child_failure said;
        ssize_t count = read(report[0], &said, sizeof said);
        if (count < 0 && errno == EINTR) continue;
        if (count != sizeof said) break;
        if (said.part == MOULT_PART_MOUNTS && said.code == 0) {
            *is_read_only = 1;
            continue;
        }
        if (said.part == MOULT_PART_STARTED) {
            *group = said.code;
            continue;
        }
        *failure = said;
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
        child = -1;
    }
    close(report[0]);
    return child;
}
