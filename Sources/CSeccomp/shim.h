// libseccomp: compiles rules about system calls to the kernel's filter program.
#pragma once
#include <seccomp.h>

// The action is a macro over its error.
static inline uint32_t moult_seccomp_error(uint16_t code) { return SCMP_ACT_ERRNO(code); }
static inline uint32_t moult_seccomp_allow(void) { return SCMP_ACT_ALLOW; }
static inline uint32_t moult_seccomp_kill(void) { return SCMP_ACT_KILL_PROCESS; }
