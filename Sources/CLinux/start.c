// Runs before the Swift runtime starts, so that the static command works without /proc: in a chroot, or in a single-file
// image.
#include "CLinux.h"
#include <stdlib.h>
#include <sys/auxv.h>

static int argument_count;
static char **arguments;

// Swift's runtime reads the command line from /proc/self/cmdline, which is missing without /proc. In its own constructor, the
// runtime looks for its crash reporter, either below the directory in SWIFT_ROOT or through /proc/self/exe, and aborts if it
// has neither. The static command comes without a crash reporter, so any directory will do. Constructors with a priority run
// before all others.
__attribute__((constructor(101))) static void before_swift(int count, char **words) {
    argument_count = count;
    arguments = words;
    char byte;
    if (readlink("/proc/self/exe", &byte, 1) < 0) setenv("SWIFT_ROOT", "/", 0);
}

int moult_argument_count(void) { return argument_count; }
const char *moult_program_path(void) {
    const char *path = (const char *)getauxval(AT_EXECFN);
    return path ? path : "";
}
const char *moult_argument(int index) { return arguments[index]; }
