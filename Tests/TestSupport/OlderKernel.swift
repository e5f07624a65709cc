import MoultFiles

/// Simulates an older kernel for a program: newer system calls fail as on such a kernel.
package enum OlderKernel {
    /// Compiles a program in the directory, with gcc, and returns its path. The program runs its arguments as on a kernel
    /// without Landlock.
    package static func withoutLandlock(in directory: String) throws -> String {
        try without("landlock", 444...446, in: directory)
    }

    /// Does the same for a kernel without `openat2`, as before Linux 5.6.
    package static func withoutOpenat2(in directory: String) throws -> String {
        try without("openat2", 437...437, in: directory)
    }

    /// Does the same for a kernel without `pidfd_open`, as before Linux 5.3.
    package static func withoutProcessDescriptors(in directory: String) throws -> String {
        try without("pidfd", 434...434, in: directory)
    }

    /// Does the same for a container that refuses seccomp(2) and permits prctl(2).
    package static func withoutSeccompCall(in directory: String) throws -> String {
        #if arch(arm64)
            try without("seccomp", 277...277, in: directory)
        #else
            try without("seccomp", 317...317, in: directory)
        #endif
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

    /// Compiles a program in the directory, with gcc, and returns its path. The program runs a command as on an older kernel:
    /// its first argument is the version of Landlock, and the others are the command. Landlock calls return this version, and
    /// EINVAL for access rights that the version does not have.
    package static func withOldLandlock(in directory: String) throws -> String {
        let path = "\(directory)/with-old-landlock"
        try Files.writeNew(Array(oldLandlock.utf8), to: "\(path).c")
        try Shell.must(["gcc", "-O1", "-o", path, "\(path).c"])
        return path
    }

    private static let oldLandlock = """
        #define _GNU_SOURCE
        #include <errno.h>
        #include <fcntl.h>
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <poll.h>
        #include <stddef.h>
        #include <stdint.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/ioctl.h>
        #include <sys/prctl.h>
        #include <sys/socket.h>
        #include <sys/syscall.h>
        #include <sys/uio.h>
        #include <sys/wait.h>
        #include <unistd.h>

        static int version;

        static void answer(int listener) {
            struct seccomp_notif asked;
            struct seccomp_notif_resp answer;
            memset(&asked, 0, sizeof asked);
            memset(&answer, 0, sizeof answer);
            if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return;
            answer.id = asked.id;
            if (asked.data.args[2] == 1) {
                answer.val = version;
            } else {
                uint64_t rights[3] = {0};
                struct iovec here = {rights, sizeof rights}, there = {(void *)asked.data.args[0], sizeof rights};
                const int bits[] = {13, 13, 14, 15, 15, 16};
                uint64_t known = (1ull << bits[version < 5 ? version : 5]) - 1;
                if (process_vm_readv(asked.pid, &here, 1, &there, 1, 0) != sizeof rights) answer.error = -EFAULT;
                else if (rights[0] & ~known || (version < 4 && rights[1]) || (version < 6 && rights[2])) answer.error = -EINVAL;
                else answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
            }
            ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
        }

        int main(int count, char **words) {
            int ends[2], listener = -1, status;
            version = atoi(words[1]);
            if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 125;
            char room[CMSG_SPACE(sizeof listener)] = {0}, byte = 0;
            struct iovec data = {&byte, 1};
            struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
            pid_t child = fork();
            if (child == 0) {
                struct sock_filter filter[] = {
                    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 444, 0, 1),
                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                };
                struct sock_fprog program = {4, filter};
                if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) _exit(125);
                listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
                struct cmsghdr *header = CMSG_FIRSTHDR(&message);
                *header = (struct cmsghdr){CMSG_LEN(sizeof listener), SOL_SOCKET, SCM_RIGHTS};
                memcpy(CMSG_DATA(header), &listener, sizeof listener);
                if (listener < 0 || sendmsg(ends[1], &message, 0) != 1) _exit(125);
                close(listener);
                close(ends[0]);
                close(ends[1]);
                execvp(words[2], words + 2);
                perror(words[2]);
                _exit(126);
            }
            close(ends[1]);
            if (recvmsg(ends[0], &message, 0) != 1) return 125;
            memcpy(&listener, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof listener);
            struct pollfd events[] = {{listener, POLLIN, 0}, {syscall(SYS_pidfd_open, child, 0), POLLIN, 0}};
            while (poll(events, 2, -1) > 0 && !events[1].revents)
                if (events[0].revents & POLLIN) answer(listener);
            waitpid(child, &status, 0);
            return WIFEXITED(status) ? WEXITSTATUS(status) : 124;
        }

        """
}
