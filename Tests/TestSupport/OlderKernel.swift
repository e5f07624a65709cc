import MoultFiles

/// A kernel that knows less, for whatever is run through it: it answers a system call as one without that does.
package enum OlderKernel {
    /// A program that runs the words after its own name on a kernel without Landlock. It is made in the directory, by gcc.
    package static func withoutLandlock(in directory: String) throws -> String {
        try without("landlock", 444...446, in: directory)
    }

    /// The same without `openat2`, as before Linux 5.6.
    package static func withoutOpenat2(in directory: String) throws -> String {
        try without("openat2", 437...437, in: directory)
    }

    private static func without(_ name: String, _ calls: ClosedRange<Int>, in directory: String) throws -> String {
        let path = "\(directory)/without-\(name)"
        try Files.writeNew(
            Array(
                """
                #include <errno.h>
                #include <linux/filter.h>
                #include <linux/seccomp.h>
                #include <stddef.h>
                #include <stdio.h>
                #include <sys/prctl.h>
                #include <unistd.h>
                int main(int count, char **words) {
                    struct sock_filter filter[] = {
                        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, \(calls.lowerBound), 0, 2),
                        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, \(calls.upperBound), 1, 0),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                    };
                    struct sock_fprog program = {5, filter};
                    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 125;
                    execvp(words[1], words + 1);
                    perror(words[1]);
                    return 126;
                }

                """.utf8), to: "\(path).c")
        try Shell.must(["gcc", "-O1", "-o", path, "\(path).c"])
        return path
    }
}
