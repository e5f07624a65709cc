#include "CLinux.h"

struct moult_landlock_rules {
    uint64_t files, network, scopes;
};

// The version of Landlock that the kernel has, negative if none is in force.
int moult_landlock_version(void) { return (int)syscall(444 /* landlock_create_ruleset */, NULL, 0, 1u); }

int moult_landlock_create(uint64_t files, uint64_t network, uint64_t scopes) {
    // An older kernel takes the longer form, too, as long as what it does not know is zero.
    struct moult_landlock_rules rules = {files, network, scopes};
    return (int)syscall(444, &rules, sizeof rules, 0);
}

int moult_landlock_allow(int ruleset, int file, uint64_t access) {
    struct __attribute__((packed)) {
        uint64_t access;
        int32_t file;
    } beneath = {access, file};
    return (int)syscall(445 /* landlock_add_rule */, ruleset, 1 /* LANDLOCK_RULE_PATH_BENEATH */, &beneath, 0);
}

int moult_open_path(const char *path) { return openat(AT_FDCWD, path, O_PATH | O_CLOEXEC); }

// --- seccomp

// The calls of one list, 0 for what is denied always, one by one; a null name at the end. Those from 424 on have the same
// number on every processor.
moult_call moult_denied_call(int list, int index) {
#define CALL(name) {#name, SYS_##name}
    static const moult_call always[] = {
        // Landlock does not look at owners, modes, times and attributes.
        CALL(fchmod), CALL(fchmodat), CALL(fchown), CALL(fchownat), CALL(utimensat), CALL(setxattr), CALL(lsetxattr),
        CALL(fsetxattr), CALL(removexattr), CALL(lremovexattr), CALL(fremovexattr), {"fchmodat2", 452},
        {"setxattrat", 463}, {"removexattrat", 466}, {"file_setattr", 469},
        // No network, and nobody to talk with by any other socket. socketpair reaches nobody else.
        CALL(socket), CALL(connect), CALL(bind), CALL(listen), CALL(accept), CALL(accept4),
        // Other processes.
        CALL(ptrace), CALL(process_vm_readv), CALL(process_vm_writev), CALL(kcmp), {"pidfd_getfd", 438},
        {"process_madvise", 440}, {"pidfd_send_signal", 424}, CALL(rt_sigqueueinfo), CALL(rt_tgsigqueueinfo),
        // Ways around the files and calls that are looked at.
        {"io_uring_setup", 425}, {"io_uring_enter", 426}, {"io_uring_register", 427}, CALL(open_by_handle_at),
        CALL(name_to_handle_at), CALL(userfaultfd), CALL(bpf), CALL(perf_event_open), CALL(fanotify_init),
        // Mounts and namespaces.
        CALL(mount), CALL(umount2), CALL(pivot_root), CALL(chroot), CALL(unshare), CALL(setns), {"open_tree", 428},
        {"move_mount", 429}, {"fsopen", 430}, {"fsconfig", 431}, {"fsmount", 432}, {"fspick", 433},
        {"mount_setattr", 442},
        // The machine.
        CALL(init_module), CALL(finit_module), CALL(delete_module), CALL(kexec_load), {"kexec_file_load",
#ifdef SYS_kexec_file_load
        SYS_kexec_file_load
#else
        294
#endif
        }, CALL(reboot), CALL(swapon), CALL(swapoff), CALL(sethostname), CALL(setdomainname), CALL(settimeofday),
        CALL(clock_settime), CALL(clock_adjtime), CALL(adjtimex), CALL(acct), CALL(quotactl), CALL(syslog),
        CALL(vhangup), CALL(add_key), CALL(request_key), CALL(keyctl), CALL(setrlimit), CALL(setpriority),
        CALL(mknodat),
#ifdef __x86_64__
        CALL(chmod), CALL(chown), CALL(lchown), CALL(utime), CALL(utimes), CALL(futimesat), CALL(mknod), CALL(iopl),
        CALL(ioperm),
#endif
        {NULL, 0},
    };
    static const moult_call alone[] = {
        CALL(execve), CALL(execveat), CALL(kill), CALL(tkill), CALL(mkdirat), CALL(symlinkat), CALL(linkat),
        CALL(renameat2), CALL(truncate), CALL(fallocate), CALL(socketpair), CALL(memfd_create),
#ifdef SYS_renameat
        CALL(renameat),
#endif
#ifdef __x86_64__
        CALL(fork), CALL(vfork), CALL(mkdir), CALL(rmdir), CALL(symlink), CALL(link), CALL(rename),
#endif
        {NULL, 0},
    };
    static const moult_call leaving[] = {CALL(setsid), CALL(setpgid), {NULL, 0}};
    static const moult_call lasting[] = {
        CALL(flock), CALL(shmget), CALL(semget), CALL(msgget), CALL(mq_open), CALL(truncate), CALL(socketpair), {NULL, 0},
    };
#undef CALL
    switch (list) {
    case MOULT_DENY_ALONE: return alone[index];
    case MOULT_DENY_LEAVING: return leaving[index];
    case MOULT_DENY_LASTING: return lasting[index];
    default: return always[index];
    }
}

static int moult_is_socket_call(int number) {
    return number == SYS_socket || number == SYS_connect || number == SYS_bind || number == SYS_listen
        || number == SYS_accept || number == SYS_accept4;
}

int moult_filter(struct sock_filter *out, int lists, int sockets, int own) {
    const int alone = lists & MOULT_DENY_ALONE;
    int n = 0;
    const struct sock_filter deny = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
#define PUT(...) out[n++] = (struct sock_filter)__VA_ARGS__
#define LOAD(field) PUT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field)))
#define LOAD_HIGH(field) PUT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field) + 4))
#define UNLESS(value, skipped) PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, skipped))
    LOAD(arch);
#if defined(__x86_64__)
    PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
#elif defined(__aarch64__)
    PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_AARCH64, 1, 0));
#else
#error "the numbers of this processor's system calls are not known here"
#endif
    PUT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    LOAD(nr);
#ifdef __x86_64__
    // The same calls under other numbers.
    PUT(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1));
    out[n++] = deny;
#endif
    for (int list = 0; list <= MOULT_DENY_LASTING; list = list ? list << 1 : 1) {
        if (list && !(lists & list)) continue;
        for (int i = 0; moult_denied_call(list, i).name; i++) {
            int number = moult_denied_call(list, i).number;
            if (sockets != MOULT_SOCKETS_NONE && moult_is_socket_call(number)) continue;
            UNLESS(number, 1);
            out[n++] = deny;
        }
    }
    // What its arguments decide. glibc asks clone3 first, whose arguments cannot be seen, and then clone.
    UNLESS(435 /* clone3 */, 1);
    PUT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
    UNLESS(SYS_clone, 3);
    LOAD(args[0]);
    // Namespaces of its own; or, alone, anything but a thread.
    if (alone)
        PUT(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x00010000u /* CLONE_THREAD */, 1, 0));
    else
        PUT(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x7e020080u /* CLONE_NEW* */, 0, 1));
    out[n++] = deny;
    LOAD(nr);
    if (sockets == MOULT_SOCKETS_LOCAL) {
        UNLESS(SYS_socket, 4);
        LOAD(args[0]);
        PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1 /* AF_UNIX */, 1, 0));
        out[n++] = deny;
        LOAD(nr);
    }
    UNLESS(SYS_prlimit64, 5);
    LOAD(args[2]);
    UNLESS(0, 2);
    LOAD_HIGH(args[2]);
    PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0));
    out[n++] = deny;
    LOAD(nr);
    UNLESS(SYS_ioctl, 7);
    LOAD(args[1]);
    // Flags and attributes of files; input for a terminal.
    PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x40086602u /* FS_IOC_SETFLAGS */, 4, 0));
    PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x401c5820u /* FS_IOC_FSSETXATTR */, 3, 0));
    PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x40087602u /* FS_IOC_SETVERSION */, 2, 0));
    PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x5412u /* TIOCSTI */, 1, 0));
    PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x541cu /* TIOCLINUX */, 0, 1));
    out[n++] = deny;
    if (alone) {
        // abort() is a signal to itself.
        LOAD(nr);
        UNLESS(SYS_tgkill, 3);
        LOAD(args[0]);
        PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)own, 1, 0));
        out[n++] = deny;
    }
    PUT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
#undef PUT
#undef LOAD
#undef LOAD_HIGH
#undef UNLESS
    return n;
}

// Whether the kernel can filter calls: it looks at the address only if it can.
int moult_has_seccomp(void) {
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) < 0 && errno == EFAULT;
}

int moult_confine(const moult_confinement *how) {
    for (int i = 0; i < how->limit_count; i++) {
        uint64_t limit[2] = {how->limits[i].soft, how->limits[i].hard}, old[2];
        // What is narrower already stays.
        if (syscall(SYS_prlimit64, 0, how->limits[i].resource, NULL, old) != 0) return MOULT_PART_LIMITS;
        if (old[1] < limit[1]) limit[1] = old[1];
        if (old[0] < limit[0]) limit[0] = old[0];
        if (limit[1] < limit[0]) limit[0] = limit[1];
        if (syscall(SYS_prlimit64, 0, how->limits[i].resource, limit, NULL) != 0) return MOULT_PART_LIMITS;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return MOULT_PART_PRIVILEGES;
    if (how->ruleset >= 0 && syscall(446 /* landlock_restrict_self */, how->ruleset, 0) != 0) return MOULT_PART_LANDLOCK;
    if (how->filter_count > 0) {
        struct sock_fprog program = {(unsigned short)how->filter_count, (struct sock_filter *)how->filter};
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) return MOULT_PART_SECCOMP;
    }
    return 0;
}
