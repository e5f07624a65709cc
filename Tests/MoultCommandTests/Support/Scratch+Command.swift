import MoultBasics
import TestSupport

extension Scratch {
    /// Runs a shell script in the directory, with `moult` as the built command and an environment without variables
    /// that affect its output.
    func moult(_ script: String) throws -> (status: Int32, out: String, err: String) { try run(script, options: []) }

    /// Runs such a script, in which each command must succeed, and returns its output. A single command may instead be
    /// required to end with another status.
    @discardableResult
    func mustMoult(_ script: String, status: Int32 = 0) throws -> String {
        let ended = try run(script, options: Shell.strict)
        guard ended.status == status else {
            throw MoultError(.system, what: "\(script) ended with \(ended.status)", why: ended.err + ended.out)
        }
        return ended.out
    }

    private func run(_ script: String, options: [String]) throws -> (status: Int32, out: String, err: String) {
        if let script = Script(script) {
            let ended = try run(script, isStrict: !options.isEmpty, language: "C")
            return (ended.status, ended.output, ended.errors)
        }
        try write("command", script)
        let kept = Sanitizer.environment.map { "\($0)='\($1)' " }.joined()
        let clean = "env -i \(kept)PATH=\"\(try BuiltMoult.directory()):$PATH\" HOME='\(path)'"
        return (run("\(clean) bash \(options.joined(separator: " ")) command"), try text("out"), try text("err"))
    }
}
