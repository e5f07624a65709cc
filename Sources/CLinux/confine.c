#include "CLinux.h"

struct moult_landlock_rules {
    uint64_t files, network, scopes;
};

// Returns the version of Landlock in the kernel; a negative number if the kernel does not enforce Landlock.
int moult_landlock_version(void) { return (int)syscall(444 /* landlock_create_ruleset */, NULL, 0, 1u); }

int moult_landlock_create(uint64_t files, uint64_t network, uint64_t scopes) {
    // An older kernel also accepts the longer structure, as long as the fields that it does not know are zero.
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

// --- seccomp

// Returns whether the kernel can filter system calls: only then does it read the null address, and fails with EFAULT.
int moult_has_seccomp(void) {
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) < 0 && errno == EFAULT;
}

// Dropped capabilities can be regained neither through file capabilities nor by executing a program as root.
int moult_drop_capabilities(uint64_t kept) {
    // EPERM means that the process may not change its bounding set. This is harmless: with no_new_privs, a program gets no more
    // capabilities than the process has. EINVAL marks the end of the list.
    for (unsigned long capability = 0; capability < 64; capability++)
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EPERM && errno != EINVAL) return -1;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL) return -1;
    struct {
        uint32_t version;
        int process;
    } header = {0x20080522 /* _LINUX_CAPABILITY_VERSION_3 */, 0};
    struct {
        uint32_t effective, permitted, inheritable;
    } sets[2] = {{(uint32_t)kept, (uint32_t)kept, 0}, {(uint32_t)(kept >> 32), (uint32_t)(kept >> 32), 0}};
    return (int)syscall(SYS_capset, &header, sets);
}

int moult_confine(const moult_confinement *how) {
    for (int i = 0; i < how->limit_count; i++) {
        uint64_t limit[2] = {how->limits[i].soft, how->limits[i].hard}, old[2];
        // An existing lower limit stays in force.
        if (syscall(SYS_prlimit64, 0, how->limits[i].resource, NULL, old) != 0) return MOULT_PART_LIMITS;
        if (old[1] < limit[1]) limit[1] = old[1];
        if (old[0] < limit[0]) limit[0] = old[0];
        if (limit[1] < limit[0]) limit[0] = limit[1];
        if (syscall(SYS_prlimit64, 0, how->limits[i].resource, limit, NULL) != 0) return MOULT_PART_LIMITS;
    }
    if (moult_drop_capabilities(how->capabilities) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return MOULT_PART_PRIVILEGES;
    if (how->ruleset >= 0 && syscall(446 /* landlock_restrict_self */, how->ruleset, 0) != 0) return MOULT_PART_LANDLOCK;
    if (how->filter_count > 0) {
        struct sock_fprog program = {(unsigned short)how->filter_count, (struct sock_filter *)how->filter};
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) return MOULT_PART_SECCOMP;
    }
    return 0;
}
