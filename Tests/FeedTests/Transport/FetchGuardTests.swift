import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Attacks by malicious code in `moult-fetch`. The code is in a library that replaces the transfer function of libcurl.
@Suite struct FetchGuardTests {
    private static let attacker = """
        #define _GNU_SOURCE
        #include <errno.h>
        #include <fcntl.h>
        #include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/socket.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static void say(const char *name, long answer) {
            dprintf(2, "%s: %s\\n", name, answer < 0 ? strerrorname_np(errno) : "allowed");
        }
        int curl_easy_perform(void *handle) {
            const char *file = getenv("PLACE"), *made = getenv("MADE");
            char *words[] = {"true", NULL};
            say("read", open(file, O_RDONLY));
            say("read the parent's environment", open("/proc/1/environ", O_RDONLY));
            say("write", open(file, O_WRONLY));
            say("cut", truncate(file, 0));
            say("make", open(made, O_WRONLY | O_CREAT, 0600));
            say("remove", unlink(file));
            say("rename", rename(file, made));
            say("chmod", chmod(file, 0777));
            say("start", execv("/bin/true", words));
            say("fork", fork());
            say("signal", kill(getppid(), 0));
            say("listen", listen(socket(AF_INET, SOCK_STREAM, 0), 1));
            say("raw socket", socket(AF_INET, SOCK_RAW, 1));
            say("packets", socket(AF_PACKET, SOCK_RAW, 0));
            say("ptrace", syscall(SYS_ptrace, 16, getppid(), 0, 0));
            say("shared memory", syscall(SYS_shmget, 0, 4096, 01600));
            say("socket", socket(AF_INET6, SOCK_STREAM, 0));
            say("certificates", open("/etc/ssl/certs", O_RDONLY));
            return 7;
        }
        """

    @Test(.tags(.thorough)) func `a transfer process can neither write files nor start programs nor read other files`()
        throws
    {
        let scratch = try Scratch()
        let library = scratch.path("attack.so")
        try Files.writeNew(Array(Self.attacker.utf8), to: scratch.path("attack.c"))
        try Shell.must(["gcc", "-shared", "-fPIC", "-o", library, scratch.path("attack.c")])
        let file = scratch.path("file")
        try Files.writeNew(Array("secret\n".utf8), to: file)
        let ended = try Shell.run(
            [Files.directory(of: try BuiltMoult.path()) + "/moult-fetch"],
            environment: ["LD_PRELOAD": library, "PLACE": file, "MADE": scratch.path("made")],
            input: #"{"url":"http://127.0.0.1:9/x","offset":0,"patience":1,"minimumRate":0,"deadline":9,"bandwidth":0}"#
        )
        let found = ended.errors.split(separator: "\n").filter { !$0.hasPrefix("{") }.map { String($0) }
        #expect(found.count == 18, "\(ended)")
        #expect(found.suffix(2) == ["socket: allowed", "certificates: allowed"])
        for line in found.dropLast(2) { #expect(line.hasSuffix(": EPERM") || line.hasSuffix(": EACCES"), "\(line)") }
        #expect(try Files.read(file, limit: 10) == Array("secret\n".utf8))
        #expect(try Files.facts(scratch.path("made")) == nil)
    }
}
