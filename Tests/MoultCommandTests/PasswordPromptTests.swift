import MoultFiles
import TestSupport
import Testing

/// A password prompt on a real terminal, and the signals that end or stop it.
@Suite struct PasswordPromptTests {
    let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        try scratch.must("echo secret | moult keygen -q mine; echo text > text; mkdir empty")
        // Runs a command on a terminal, waits for its prompt, and types keys or sends a signal. Prints how the command
        // ended, whether the terminal echoes input, and the output.
        try scratch.write(
            "at-prompt.py",
            """
            import os, pty, signal, sys, termios, time
            deed, words = sys.argv[1], sys.argv[2:]
            def echo(terminal):
                return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)
            # The parent keeps it open: the last close would reset it.
            terminal, end = pty.openpty()
            child = os.fork()
            if child == 0:
                os.login_tty(end)
                if deed == "suspend":
                    # A process can be stopped by the terminal only while another one of its session can continue it.
                    job = os.fork()
                    if job:
                        os.waitpid(job, os.WUNTRACED)
                        assert echo(0)
                        os.kill(job, signal.SIGCONT)
                        os._exit(os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]))
                    os.setpgid(0, 0)
                    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                    os.tcsetpgrp(0, os.getpid())
                    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
                os.execvp(words[0], words)
            seen = b""
            def wait_for(text):
                global seen
                while text not in seen:
                    seen += os.read(terminal, 10000)
                seen = seen.split(text, 1)[1]
            wait_for(b": ")
            assert not echo(terminal)
            if deed == "suspend":
                os.write(terminal, b"\\x1a")
                wait_for(b": ")
                assert not echo(terminal)
                os.write(terminal, b"secret\\n")
            elif deed.startswith("SIG"):
                os.kill(child, getattr(signal, deed))
            else:
                os.write(terminal, b"\\x03")
            limit = time.monotonic() + 10
            while True:
                pid, status = os.waitpid(child, os.WNOHANG)
                if pid:
                    break
                assert time.monotonic() < limit, "did not end"
                time.sleep(0.01)
            print(os.waitstatus_to_exitcode(status), "echo" if echo(terminal) else "silent")
            """)
    }

    @Test(arguments: [
        ("interrupt", "moult keygen empty/new", -2),
        ("SIGTERM", "moult keygen empty/new", -15), ("SIGHUP", "moult keygen empty/new", -1),
        ("interrupt", "moult sign -k mine.key text", -2), ("SIGTERM", "moult publish empty -k mine.key", -15),
        ("interrupt", "moult trust empty -k mine.key", -2),
        ("suspend", "moult sign -k mine.key text", 0),
    ])
    func `a signal at the prompt restores the terminal and leaves no file`(
        deed: String, command: String, status: Int
    ) throws {
        let ended: Shell.Ended = try scratch.run("ulimit -c 0; TERM=dumb python3 at-prompt.py \(deed) \(command)")
        #expect(ended.output == "\(status) echo\n", "\(ended)")
        #expect(try scratch.must("ls -A empty; ls -A | grep making || true") == "")
        #expect(try scratch.must("ls").contains("text.minisig") == (deed == "suspend"))
    }

    /// While an update runs, signals are only recorded.
    @Test func `Ctrl-C at a confirmation counts as no`() throws {
        let release = try ReleaseMaker(in: scratch.path("rel")).make(
            "1.0.0", sequence: 1, [.reference("food", "CREATE TABLE food(x)")])
        try scratch.must("moult init -q store --product org.example.test")
        try scratch.write(
            "at-question.py",
            """
            import os, pty, sys, time
            child, terminal = pty.fork()
            if child == 0:
                os.execvp("moult", ["moult"] + sys.argv[1:])
            seen = b""
            while b"[y/N]" not in seen:
                seen += os.read(terminal, 10000)
            os.write(terminal, b"\\x03")
            limit = time.monotonic() + 10
            while True:
                pid, status = os.waitpid(child, os.WNOHANG)
                if pid:
                    break
                assert time.monotonic() < limit, "did not end"
                time.sleep(0.01)
            sys.exit(os.waitstatus_to_exitcode(status))
            """)
        let ended: Shell.Ended = try scratch.run(
            "TERM=dumb python3 at-question.py apply --confirm --store store \(release)")
        #expect(ended.status == 1, "\(ended)")
        #expect(try scratch.must("moult status -s store").contains("nothing is installed"))
    }
}
