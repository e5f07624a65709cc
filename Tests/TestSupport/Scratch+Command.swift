import MoultBasics
import MoultFiles

extension Scratch {
    /// Runs a shell script in the directory, with `moult` as the built command.
    package func run(_ script: String, environment: [String: String] = [:]) throws -> Shell.Ended {
        try run(script, options: [], environment: environment)
    }

    /// Runs a shell script, in which each command must succeed, and returns its output. A single command may instead be
    /// required to end with another status.
    @discardableResult
    package func must(_ script: String, status: Int32 = 0, environment: [String: String] = [:]) throws -> String {
        let ended = try run(script, options: Shell.strict, environment: environment)
        guard ended.status == status else {
            throw MoultError(.system, what: "\(script) ended with \(ended.status)", why: ended.errors + ended.output)
        }
        return ended.output
    }

    private func run(_ script: String, options: [String], environment: [String: String]) throws -> Shell.Ended {
        if environment.isEmpty, let script = Script(script) { return try run(script, isStrict: !options.isEmpty) }
        return try runInShell(script, options: options, environment: environment)
    }

    /// Runs the commands of `moult` in this process, and the others in a shell.
    package func run(_ script: Script, isStrict: Bool, language: String = "C.UTF-8") throws -> Shell.Ended {
        var (status, output, errors) = (Int32(0), "", "")
        for part in script.parts {
            let ended =
                switch part {
                case .moult(let words):
                    try InProcess.run(words, in: path, language: language)
                        ?? Shell.run(
                            [BuiltMoult.path()] + words, in: path, environment: ["HOME": path, "LANG": language])
                case .shell(let text):
                    try runInShell(text, options: isStrict ? Shell.strict : [], environment: ["LANG": language])
                }
            (status, output, errors) = (ended.status, output + ended.output, errors + ended.errors)
            if isStrict, status != 0 { break }
        }
        return Shell.Ended(status: status, output: output, errors: errors)
    }

    private func runInShell(_ script: String, options: [String], environment: [String: String]) throws -> Shell.Ended {
        let path = "\(try BuiltMoult.directory()):/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return try Shell.run(
            ["bash"] + options + ["-c", script], in: self.path, environment: ["PATH": path].merging(environment) { $1 })
    }
}

extension Scratch {
    #if MOULT_PORTABLE
        /// The system call with which the built command renames a file.
        package static let renameCall = "renameat"
    #else
        /// The system call with which the built command renames a file.
        package static let renameCall = "renameat2"
    #endif

    /// Returns the number of the first call of a kind, on a file in a store or on any, after the decision of an update, for tests
    /// that kill the update there. The update runs in a copy of the store.
    package func callAfterDecision(_ call: String, on file: String = "", of store: String, to manifest: String) throws
        -> Int
    {
        // With -y, a call names the path of its descriptor.
        let place = file.isEmpty ? "" : "/counted/\(file)>"
        let number = try must(
            """
            rm -rf counted; cp -a \(store) counted
            strace -f -qq -y -o calls -e trace=\(Self.renameCall),\(call) moult apply -q --store counted \(manifest)
            awk '/ \(Self.renameCall)\\(/ && /decided\\.json/ { print count[$1] + 1; exit }
                / \(call)\\(/ && index($0, "\(place)") { count[$1]++ }' calls
            rm -rf counted calls
            """)
        guard let number = Int(number.dropLast()) else {
            throw MoultError(.system, what: "the update to \(manifest) was not decided: \(number)")
        }
        return number
    }
}
