/* Runs a command, counts the calls of all its threads and processes that change something on a disk, and performs an
 * ACTION at one of them.
 *
 *   strike -o REPORT [-l] [-s DIRECTORY] [-a ACTION -n NUMBER [-g]] [-c CALL] [-m DIRECTORY] [-x PROGRAM] [-w FILE] [-t MILLISECONDS] -- COMMAND...
 *
 * ACTION   kill    every process dies before the call
 *          torn    half of the data is written, then every process dies
 *          cut     the file system of DIRECTORY loses the data that is not on the disk yet, and every process dies
 *          EIO, ENOSPC   the call fails, and with -g every later call fails as well
 *          delay   the command waits before the call until FILE has two more lines, and at most for MILLISECONDS; with -g it also
 *                  waits before every later call
 *          run     PROGRAM runs in a shell before the call; a PROGRAM that waits for the command runs on next to it
 * CALL     counts only calls of this name; `lease` is the fcntl call for a write lease, which changes nothing on a disk
 * NUMBER   the number of the call, among those that the action applies to: for `torn` only writes, for `ENOSPC` only
 *          calls that need space
 * REPORT   gets one line: the number of calls of each class, the first call that was struck with its paths, the exit
 *          status, the time of a power cut in nanoseconds; with -l, it also gets a line for each call before that call
 * -s       before each call and in the end, REPORT also gets the state of DIRECTORY: a line `: MODE INODE LINKS SIZE DIGEST PATH` for
 *          each name, a line `@ LOCK` for each lock and lease on its files, and the number of calls that have locked or unlocked a file;
 *          locks on files that only the command opens, in `transactions`, are left out
 *
 * The command is not modified: a seccomp filter stops its traced threads only at these calls, so it runs at nearly its
 * normal speed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef __x86_64__
#error "the registers of a system call are known for x86_64 only"
#endif

/* Stops all writing at once, as a power cut does. ext4 and XFS use the same request number, which is not in a system header. */
#define SHUTDOWN _IOR('X', 125, uint32_t)
#define WITHOUT_FLUSHING 2u

enum { DATA = 1, ROOM = 2, FILED = 4, OPENS = 8, CONTROLS = 16, LEASES = 32 };

/* Traits of calls: DATA writes bytes that can be torn, ROOM can run out of space, FILED has a descriptor as the first
 * argument. */
static const struct call { long number; const char *name; int traits; } calls[] = {
    {SYS_write, "write", DATA | ROOM | FILED}, {SYS_pwrite64, "pwrite", DATA | ROOM | FILED},
    {SYS_writev, "writev", ROOM | FILED}, {SYS_pwritev, "pwritev", ROOM | FILED}, {SYS_pwritev2, "pwritev2", ROOM | FILED},
    {SYS_sendfile, "sendfile", ROOM | FILED}, {SYS_copy_file_range, "copy_file_range", ROOM},
    {SYS_open, "open", ROOM | OPENS}, {SYS_openat, "openat", ROOM | OPENS}, {SYS_openat2, "openat2", ROOM | OPENS}, {SYS_creat, "creat", ROOM},
    {SYS_mkdir, "mkdir", ROOM}, {SYS_mkdirat, "mkdirat", ROOM}, {SYS_rmdir, "rmdir", 0},
    {SYS_unlink, "unlink", 0}, {SYS_unlinkat, "unlinkat", 0},
    {SYS_rename, "rename", ROOM}, {SYS_renameat, "renameat", ROOM}, {SYS_renameat2, "renameat2", ROOM},
    {SYS_link, "link", ROOM}, {SYS_linkat, "linkat", ROOM}, {SYS_symlink, "symlink", ROOM}, {SYS_symlinkat, "symlinkat", ROOM},
    {SYS_chmod, "chmod", 0}, {SYS_fchmod, "fchmod", FILED}, {SYS_fchmodat, "fchmodat", 0},
    {SYS_chown, "chown", 0}, {SYS_fchown, "fchown", FILED}, {SYS_fchownat, "fchownat", 0},
    {SYS_truncate, "truncate", 0}, {SYS_ftruncate, "ftruncate", FILED}, {SYS_fallocate, "fallocate", ROOM | FILED},
    {SYS_fsync, "fsync", ROOM | FILED}, {SYS_fdatasync, "fdatasync", ROOM | FILED}, {SYS_syncfs, "syncfs", ROOM | FILED},
    {SYS_sync_file_range, "sync_file_range", ROOM | FILED}, {SYS_msync, "msync", 0},
    {SYS_utimensat, "utimensat", 0}, {SYS_setxattr, "setxattr", ROOM}, {SYS_fsetxattr, "fsetxattr", ROOM | FILED},
    {SYS_ioctl, "ioctl", ROOM | FILED | CONTROLS}, {SYS_fcntl, "lease", FILED | LEASES},
};

/* The numbers of the arguments that are paths. */
static const struct paths { long number; int first, second; } paths[] = {
    {SYS_open, 1, 0}, {SYS_openat, 2, 0}, {SYS_openat2, 2, 0}, {SYS_creat, 1, 0}, {SYS_mkdir, 1, 0}, {SYS_mkdirat, 2, 0}, {SYS_rmdir, 1, 0},
    {SYS_unlink, 1, 0}, {SYS_unlinkat, 2, 0}, {SYS_rename, 1, 2}, {SYS_renameat, 2, 4}, {SYS_renameat2, 2, 4},
    {SYS_link, 1, 2}, {SYS_linkat, 2, 4}, {SYS_symlink, 1, 2}, {SYS_symlinkat, 1, 3}, {SYS_chmod, 1, 0},
    {SYS_fchmodat, 2, 0}, {SYS_chown, 1, 0}, {SYS_fchownat, 2, 0}, {SYS_truncate, 1, 0}, {SYS_utimensat, 2, 0},
    {SYS_setxattr, 1, 0},
};
enum { CALLS = sizeof calls / sizeof *calls };

static struct { const char *action, *program, *only, *watched, *directory; long number, milliseconds; int going, listing, mount; FILE *report; } wish =
    {.milliseconds = 100, .mount = -1};
static struct { long long cut; long all, data, room, struck, locked; const char *at; char paths[8192]; int ending; } seen;
static pid_t threads[4096];
static int thread_count;

static void fail(const char *what) {
    perror(what);
    exit(70);
}

static void watch_calls(void) {
    struct sock_filter filter[CALLS + 8];
    int length = 0;
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < CALLS; i++) {
        /* Every lock of SQLite is an fcntl call, and stopping at each of them would take time. */
        uint32_t number = calls[i].traits & LEASES && !wish.only && !wish.directory ? UINT32_MAX : (uint32_t)calls[i].number;
        filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, (uint8_t)(CALLS - i), 0);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    struct sock_fprog program = {.len = (unsigned short)length, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        fail("strike: seccomp");
}

/* Writes the path of a descriptor of the traced thread to `path`; empty unless it is a file or directory on a disk. */
static void describe(pid_t thread, long descriptor, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/fd/%ld", thread, descriptor);
    ssize_t count = readlink(link, path, size - 1);
    path[count < 0 ? 0 : count] = 0;
    int device = !strncmp(path, "/dev/", 5) && strncmp(path, "/dev/shm/", 9);
    if (path[0] != '/' || device || !strncmp(path, "/proc/", 6) || !strncmp(path, "/memfd:", 7)) path[0] = 0;
}

/* Returns the flags of an `openat2` call, which are at the beginning of its structure; 0 if the thread is gone. */
static unsigned long flags_of_openat2(pid_t thread, unsigned long long structure) {
    uint64_t flags = 0;
    struct iovec here = {&flags, sizeof flags}, there = {(void *)structure, sizeof flags};
    return process_vm_readv(thread, &here, 1, &there, 1, 0) == sizeof flags ? flags : 0;
}

/* Copies a string from the memory of the traced thread. */
static void copy_string(pid_t thread, unsigned long long address, char *text, size_t size) {
    size_t length = 0;
    /* Reads only to the end of the page, because the next page may not be mapped. */
    while (length + 1 < size) {
        size_t count = 4096 - (address + length) % 4096;
        if (count > size - 1 - length) count = size - 1 - length;
        struct iovec here = {text + length, count}, there = {(void *)(address + length), count};
        ssize_t copied = process_vm_readv(thread, &here, 1, &there, 1, 0);
        if (copied <= 0) break;
        char *end = memchr(text + length, 0, (size_t)copied);
        if (end) return;
        length += (size_t)copied;
    }
    text[length] = 0;
}

/* Writes the paths of the call that was struck to `seen`, as `FIRST` or `FIRST,SECOND`. */
static void name_paths(pid_t thread, const struct call *call, const struct user_regs_struct *registers, const char *filed) {
    unsigned long long arguments[] = {0, registers->rdi, registers->rsi, registers->rdx, registers->r10};
    size_t room = sizeof seen.paths / 2;
    if (call->traits & FILED) snprintf(seen.paths, room, "%s", filed);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (paths[i].number != call->number) continue;
        copy_string(thread, arguments[paths[i].first], seen.paths, room);
        if (!paths[i].second) continue;
        size_t length = strlen(seen.paths);
        seen.paths[length] = ',';
        copy_string(thread, arguments[paths[i].second], seen.paths + length + 1, room - 1);
    }
    for (char *c = seen.paths; *c; c++)
        if (*c <= ' ' || *c == '=') *c = '?';
}

static const struct call *known(long number) {
    for (int i = 0; i < CALLS; i++)
        if (calls[i].number == number) return &calls[i];
    return NULL;
}

static void kill_all(void) {
    for (int i = 0; i < thread_count; i++) kill(threads[i], SIGKILL);
}

/* Runs another program, and waits only a short time for it, because it may wait for a lock that the stopped command holds. */
static void run_program(void) {
    pid_t child = fork();
    if (child < 0) fail("strike: fork");
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", wish.program, (char *)NULL);
        fail("/bin/sh");
    }
    for (int i = 0; i < 200 && waitpid(child, NULL, WNOHANG) == 0; i++) usleep(2000);
}

static long lines_of(const char *path) {
    long lines = 0;
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!file) return 0;
    for (int c; (c = getc(file)) != EOF;) lines += c == '\n';
    fclose(file);
    return lines;
}

/* Gives an app the time for a whole transaction between two calls of the command, unless the command has locked it out. */
static void delay(void) {
    long before = lines_of(wish.watched);
    for (long i = 0; i < wish.milliseconds && lines_of(wish.watched) < before + 2; i++) usleep(1000);
}

static struct { dev_t device; ino_t inode; } files[1 << 16];
static struct { ino_t inode; uint64_t digest; } remembered[1 << 12];
static struct { char line[160]; dev_t device; ino_t inode; int leased; } locks[1 << 10];
static int file_count, lock_count;

/* Mixes all bytes of a file into a number. Files are small, and are read again before each call. */
static uint64_t digest_of(const char *path) {
    static uint64_t words[1 << 14];
    uint64_t mixed = 0x9e3779b97f4a7c15u;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return 0;
    for (ssize_t count; (count = read(file, words, sizeof words)) > 0;) {
        memset((char *)words + count, 0, (size_t)(-count & 7));
        for (ssize_t i = 0; i < (count + 7) / 8; i++) {
            mixed = (mixed ^ words[i]) * 0xff51afd7ed558ccdu;
            mixed ^= mixed >> 32;
        }
    }
    close(file);
    return mixed;
}

static int write_name(const char *path, const struct stat *facts, int kind, struct FTW *place) {
    (void)kind, (void)place;
    uint64_t digest = 0;
    size_t length = strlen(path);
    char target[4096] = "";
    /* The content of a -shm means nothing without the locks of the process, and a read-only connection may change it. */
    int shared = length > 4 && !strcmp(path + length - 4, "-shm");
    if (S_ISLNK(facts->st_mode) && readlink(path, target, sizeof target - 1) < 0) target[0] = 0;
    for (char *c = target; *c; c++) digest = (digest ^ (unsigned char)*c) * 0x100000001b3u;
    if (S_ISREG(facts->st_mode) && !shared) {
        int leased = 0;
        for (int i = 0; i < lock_count; i++)
            leased |= locks[i].leased && locks[i].inode == facts->st_ino && locks[i].device == facts->st_dev;
        /* Opening a file would break its lease. Its content has stayed the same since then, because no other process opened it. */
        size_t at = facts->st_ino % (sizeof remembered / sizeof *remembered);
        digest = !leased ? digest_of(path) : remembered[at].inode == facts->st_ino ? remembered[at].digest : 0;
        remembered[at].inode = facts->st_ino;
        remembered[at].digest = digest;
    }
    fprintf(wish.report, ": %o %lu %lu %ld %lx %s\n", facts->st_mode, (unsigned long)facts->st_ino,
        S_ISDIR(facts->st_mode) ? 0 : (unsigned long)facts->st_nlink, S_ISREG(facts->st_mode) && !shared ? (long)facts->st_size : 0,
        (unsigned long)digest, path + strlen(wish.directory));
    if (S_ISREG(facts->st_mode) && !strstr(path, "/transactions/") && file_count < (int)(sizeof files / sizeof *files)) {
        files[file_count].device = facts->st_dev;
        files[file_count++].inode = facts->st_ino;
    }
    return 0;
}

/* Writes the state of the directory, while every thread of the command waits before its next call. */
static void write_state(void) {
    if (!wish.directory) return;
    file_count = lock_count = 0;
    FILE *list = fopen("/proc/locks", "re");
    if (!list) fail("/proc/locks");
    char line[512], class[32], kind[32], mode[32], from[32], to[32];
    unsigned major_number, minor_number;
    unsigned long inode;
    while (fgets(line, sizeof line, list) && lock_count < (int)(sizeof locks / sizeof *locks)) {
        if (sscanf(line, "%*d: %31s %31s %31s %*d %x:%x:%lu %31s %31s", class, kind, mode, &major_number, &minor_number, &inode, from, to) != 8)
            continue;
        locks[lock_count].device = makedev(major_number, minor_number);
        locks[lock_count].inode = inode;
        locks[lock_count].leased = !strcmp(class, "LEASE");
        snprintf(locks[lock_count++].line, sizeof locks->line, "%s %s %lu %s %s", class, mode, inode, from, to);
    }
    fclose(list);
    nftw(wish.directory, write_name, 32, FTW_PHYS);
    for (int i = 0; i < lock_count; i++)
        for (int j = 0; j < file_count; j++)
            if (files[j].inode == locks[i].inode && files[j].device == locks[i].device) {
                fprintf(wish.report, "@ %s\n", locks[i].line);
                break;
            }
    fprintf(wish.report, "@ %ld\n", seen.locked);
}

/* Examines the call that a thread is about to make; returns the ptrace request that lets the thread continue. */
static enum __ptrace_request judge(pid_t thread) {
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, thread, 0, &registers)) return PTRACE_CONT;
    const struct call *call = known((long)registers.orig_rax);
    if (!call) return PTRACE_CONT;
    char path[4096] = "";
    if (call->traits & OPENS) {
        unsigned long flags = call->number == SYS_open ? registers.rsi : registers.rdx;
        if (call->number == SYS_openat2) flags = flags_of_openat2(thread, registers.rdx);
        if (!(flags & (O_CREAT | O_TRUNC))) return PTRACE_CONT;
    }
    if (call->traits & CONTROLS && registers.rsi != FICLONE && registers.rsi != FICLONERANGE) return PTRACE_CONT;
    if (call->traits & LEASES && !wish.only) {
        int locks = registers.rsi == F_SETLK || registers.rsi == F_SETLKW || registers.rsi == F_OFD_SETLK ||
            registers.rsi == F_OFD_SETLKW || registers.rsi == F_SETLEASE;
        if (locks) describe(thread, (long)registers.rdi, path, sizeof path);
        seen.locked += path[0] && !strstr(path, "/transactions/");
        return PTRACE_CONT;
    }
    if (call->traits & LEASES && (registers.rsi != F_SETLEASE || registers.rdx != F_WRLCK)) return PTRACE_CONT;
    if (wish.only && strcmp(call->name, wish.only)) return PTRACE_CONT;
    if (call->traits & FILED) {
        describe(thread, (long)registers.rdi, path, sizeof path);
        if (!path[0]) return PTRACE_CONT;
    }
    int tearable = call->traits & DATA && registers.rdx > 1;
    int roomy = call->traits & ROOM;
    seen.all++;
    seen.data += tearable != 0;
    seen.room += roomy != 0;
    if (wish.listing) {
        seen.paths[0] = 0;
        name_paths(thread, call, &registers, path);
        fprintf(wish.report, "%ld %s%s%s %s\n", seen.all, call->name, tearable ? " data" : "", roomy ? " room" : "", seen.paths);
        seen.paths[0] = 0;
        write_state();
    }
    if (!wish.action) return PTRACE_CONT;
    int torn = !strcmp(wish.action, "torn"), full = !strcmp(wish.action, "ENOSPC");
    if ((torn && !tearable) || (full && !roomy)) return PTRACE_CONT;
    long now = torn ? seen.data : full ? seen.room : seen.all;
    if (now < wish.number || (now > wish.number && !wish.going)) return PTRACE_CONT;
    if (!seen.struck++) {
        seen.at = call->name;
        name_paths(thread, call, &registers, path);
    }
    if (!strcmp(wish.action, "run")) {
        run_program();
        return PTRACE_CONT;
    }
    if (!strcmp(wish.action, "delay")) {
        delay();
        return PTRACE_CONT;
    }
    if (torn) {
        registers.rdx /= 2;
        if (ptrace(PTRACE_SETREGS, thread, 0, &registers)) fail("strike: setregs");
        return PTRACE_SYSCALL;
    }
    if (full || !strcmp(wish.action, "EIO")) {
        /* The kernel does nothing for call number -1, and the value in rax is the result. */
        registers.orig_rax = (unsigned long long)-1;
        registers.rax = (unsigned long long)(full ? -ENOSPC : -EIO);
        if (ptrace(PTRACE_SETREGS, thread, 0, &registers)) fail("strike: setregs");
        return PTRACE_CONT;
    }
    uint32_t how = WITHOUT_FLUSHING;
    struct timespec now_is;
    clock_gettime(CLOCK_MONOTONIC, &now_is);
    seen.cut = now_is.tv_sec * 1000000000ll + now_is.tv_nsec;
    if (wish.mount >= 0 && ioctl(wish.mount, SHUTDOWN, &how)) fail("strike: shutdown");
    kill_all();
    return PTRACE_CONT;
}

static void remember(pid_t thread) {
    for (int i = 0; i < thread_count; i++)
        if (threads[i] == thread) return;
    if (thread_count < (int)(sizeof threads / sizeof *threads)) threads[thread_count++] = thread;
}

static void follow(pid_t root) {
    int status;
    for (pid_t thread; (thread = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR;) {
        if (thread <= 0) continue;
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (thread == root) seen.ending = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
            continue;
        }
        remember(thread);
        int event = status >> 16, stopped_by = WSTOPSIG(status);
        enum __ptrace_request how = PTRACE_CONT;
        long deliver = 0;
        if (event == PTRACE_EVENT_SECCOMP) how = judge(thread);
        else if (event == PTRACE_EVENT_STOP && stopped_by != SIGTRAP) how = PTRACE_LISTEN;
        else if (event == 0 && stopped_by == (SIGTRAP | 0x80)) kill_all(); /* half of the write is done */
        else if (event == 0) deliver = stopped_by;
        ptrace(how, thread, 0, deliver);
    }
}

int main(int count, char **words) {
    const char *report = NULL;
    for (int option; (option = getopt(count, words, "+o:a:n:gls:m:x:c:w:t:")) != -1;) switch (option) {
        case 'o': report = optarg; break;
        case 'a': wish.action = optarg; break;
        case 'n': wish.number = atol(optarg); break;
        case 'x': wish.program = optarg; break;
        case 'c': wish.only = optarg; break;
        case 'w': wish.watched = optarg; break;
        case 't': wish.milliseconds = atol(optarg); break;
        case 'g': wish.going = 1; break;
        case 'l': wish.listing = 1; break;
        case 's': wish.directory = optarg; break;
        case 'm': if ((wish.mount = open(optarg, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) fail(optarg); break;
        default: return 64;
    }
    if (!report || optind >= count || (wish.action && !strcmp(wish.action, "run") && !wish.program)) return 64;
    if (!(wish.report = fopen(report, "we"))) fail(report);
    pid_t root = fork();
    if (root < 0) fail("strike: fork");
    if (root == 0) {
        raise(SIGSTOP);
        watch_calls();
        execvp(words[optind], words + optind);
        fail(words[optind]);
    }
    int status;
    if (waitpid(root, &status, WUNTRACED) != root || !WIFSTOPPED(status)) fail("strike: wait");
    long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |
        PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD;
    if (ptrace(PTRACE_SEIZE, root, 0, options)) fail("strike: ptrace");
    remember(root);
    if (kill(root, SIGCONT)) fail("strike: continue");
    follow(root);
    if (wish.directory) {
        fprintf(wish.report, "end\n");
        write_state();
    }
    fprintf(wish.report, "calls=%ld data=%ld room=%ld struck=%ld at=%s paths=%s ending=%d cut=%lld\n", seen.all, seen.data, seen.room, seen.struck,
        seen.at ? seen.at : "-", seen.paths[0] ? seen.paths : "-", seen.ending, seen.cut);
    if (fclose(wish.report)) fail(report);
    return 0;
}
