/* Delays every fourth close() of a program by two milliseconds, as a busy machine may do: LD_PRELOAD=slowclose.so PROGRAM. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

int close(int descriptor) {
    static atomic_ulong closed;
    if (++closed % 4 == 0) usleep(2000);
    return (int)syscall(SYS_close, descriptor);
}
