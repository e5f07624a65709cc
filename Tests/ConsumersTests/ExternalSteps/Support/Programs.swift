import MoultBasics
import MoultFiles
import TestSupport

/// Programs for correct and faulty steps.
enum Programs {
    /// Writes a step in sh and returns its path. For each message, the step runs the given script, or by default
    /// behaves correctly.
    static func shell(
        _ scratch: Scratch, name: String = "step", describe: String? = nil, plan: String? = nil, prepare: String? = nil,
        apply: String? = nil, undo: String? = nil, clean: String? = nil
    ) throws -> String {
        let text = """
            #!/bin/sh
            read -r message
            case $message in
            '{"message":"describe","protocol":1,'*) \(describe ?? Self.description) ;;
            '{"message":"plan","protocol":1,'*) \(plan ?? planned("something")) ;;
            '{"message":"prepare","protocol":1,'*) \(prepare ?? result) ;;
            '{"message":"apply","protocol":1,'*) \(apply ?? result) ;;
            '{"message":"undo","protocol":1,'*) \(undo ?? result) ;;
            '{"message":"clean","protocol":1,'*) \(clean ?? result) ;;
            *) echo '{"reply":"error","message":"not known"}'; exit 1 ;;
            esac

            """
        return try write(text, scratch.path(name))
    }

    static let result = #"echo '{"reply":"result"}'"#

    static let description =
        #"echo '{"reply":"result","protocol":1,"name":"test.step","version":"1","summary":"does nothing","planIsPure":true}'"#

    /// Returns a script that prints a plan with one custom effect.
    static func planned(_ text: String, database: String? = nil, writes: [String] = []) -> String {
        let effect: JSON = .compact([
            "database": .optional(database),
            "change": [
                "do": "custom", "name": "test", "text": .string(text),
                "with": ["writes": .array(writes.map { .string($0) })],
            ],
        ])
        return "echo '\(JSON.object([.init("reply", "result"), .init("effects", [effect])]).line)'"
    }

    static func write(_ text: String, _ path: String) throws -> String {
        try Files.remove(path)
        try Files.writeNew(Array(text.utf8), to: path, mode: 0o755)
        return path
    }

    /// Compiles a statically linked program in C, and returns its path.
    static func c(_ scratch: Scratch, _ text: String, name: String = "program") throws -> String {
        let source = scratch.path("\(name).c")
        _ = try write(text, source)
        try Shell.must(["gcc", "-O1", "-static", "-o", scratch.path(name), source])
        try Files.setMode(scratch.path(name), 0o755)
        return scratch.path(name)
    }

    /// The smallest possible step.
    static let nothing = """
        #include <string.h>
        #include <unistd.h>
        static char line[1 << 20];
        static void say(const char *text) { (void)!write(1, text, strlen(text)); }
        int main(void) {
            size_t size = 0;
            ssize_t count;
            while (!memchr(line, '\\n', size) && (count = read(0, line + size, sizeof line - size)) > 0) size += count;
            if (!strncmp(line, "{\\"message\\":\\"describe\\"", 21))
                say("{\\"reply\\":\\"result\\",\\"protocol\\":1,\\"name\\":\\"test.step\\",\\"summary\\":\\"nothing\\",\\"planIsPure\\":true}\\n");
            else if (!strncmp(line, "{\\"message\\":\\"plan\\"", 17))
                say("{\\"reply\\":\\"result\\",\\"effects\\":[]}\\n");
            else
                say("{\\"reply\\":\\"result\\"}\\n");
            return 0;
        }
        """

    /// Returns a step that makes the attempts of the Python function `attempts` while it plans. The plan has a line for
    /// each attempt: the name of the attempt, and `allowed` or the name of the error.
    static func attempting(_ attempts: String) -> String {
        """
        #!/usr/bin/env python3
        import ctypes, errno, fcntl, json, os, struct, sys
        libc = ctypes.CDLL(None, use_errno=True)
        message = json.loads(sys.stdin.readline())
        parent = os.getppid()

        def call(number, *arguments):
            result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(x) if isinstance(x, int) else x for x in arguments])
            if result < 0:
                raise OSError(ctypes.get_errno(), str(number))
            return result

        \(attempts)
        if message["message"] == "describe":
            answer = {"reply": "result", "protocol": 1, "name": "test.step", "summary": "attacks", "planIsPure": True}
        else:
            effects = []
            for name, attempt in attempts(message["context"]["with"]):
                try:
                    attempt()
                    found = "allowed"
                except OSError as error:
                    found = errno.errorcode[error.errno]
                effects.append({"change": {"do": "confirm", "text": name + ": " + found}})
            answer = {"reply": "result", "effects": effects}
        print(json.dumps(answer), flush=True)
        """
    }
}
