import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// `moult keygen` writes both files of a key, or neither.
@Suite struct KeygenVerbTests {
    /// A limit on the size of files has the effect of a full disk.
    @Test func `keygen fails if it cannot write the key`() throws {
        let scratch = try Scratch()
        let full = try scratch.moult(
            """
            mkdir keys; cd keys; set -o pipefail; trap '' XFSZ
            (ulimit -f 0; moult keygen --no-password release) 2>&1 | cat
            """)
        #expect(full.status == 1)
        #expect(full.out.hasPrefix("moult: error: cannot write "), "\(full.out)")
        #expect(try scratch.moult("ls -A keys").out == "")
        let made = try scratch.moult("cd keys; moult keygen -q --no-password release && stat -c '%n %a' release.*")
        #expect(made == (0, "release.key 600\nrelease.pub 644\n", ""))
    }

    /// Root may write everywhere, so this needs another user.
    @Test(.enabled(if: geteuid() == 0, "needs root"), arguments: ["release", "./release", "sub/../release"])
    func `the error for a directory without write permission has its real path`(_ name: String) throws {
        let scratch = try Scratch()
        try scratch.must("mkdir -p bin keys/sub; cp \(BuiltMoult.directory())/moult bin; chmod -R 755 .")
        let refused = try scratch.moult(
            "cd keys; setpriv --reuid=65534 --regid=65534 --clear-groups ../bin/moult keygen --no-password \(name)")
        #expect(refused.status == 1)
        let place = try Files.resolved(scratch.path("keys"))
        #expect(
            refused.err
                == "moult: error: cannot write \(name).key: Permission denied\n  Run the command as user root, who owns \(place).\n"
        )
    }

    @Test(.tags(.thorough)) func `after a kill the next keygen creates the keys`() throws {
        let scratch = try Scratch()
        var kills = 0
        for number in 1...20 {
            let ended = try scratch.moult(
                """
                rm -rf keys; mkdir keys; cd keys
                strace -f -qq -o /dev/null -e trace=rename,renameat2 -e inject=rename,renameat2:signal=SIGKILL:when=\(number) \
                moult keygen -q --no-password release
                """)
            if ended.status == 0 { break }
            kills += 1
            // If both files were written before the kill, they already exist.
            try scratch.must(
                "cd keys; [ -s release.key ] || moult keygen -q --no-password release; ls -A | wc -l | grep -qx 2")
            try scratch.must(
                "cd keys; touch text; moult sign -q -k release.key text; minisign -V -q -p release.pub -m text")
        }
        #expect(kills > 1)
    }
}
