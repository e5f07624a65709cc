// libseccomp: compiles rules for system calls into a filter program for the kernel.
#pragma once
#include <seccomp.h>

// SCMP_ACT_ERRNO is a macro that takes the error code as its argument.
static inline uint32_t moult_seccomp_error(uint16_t code) { return SCMP_ACT_ERRNO(code); }
static inline uint32_t moult_seccomp_allow(void) { return SCMP_ACT_ALLOW; }
static inline uint32_t moult_seccomp_kill(void) { return SCMP_ACT_KILL_PROCESS; }
