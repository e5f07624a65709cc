import TestSupport

extension Scratch {
    /// Runs a shell command in the directory, with `moult` as the built command and an environment without variables
    /// that affect its output.
    func moult(_ command: String) throws -> (status: Int32, out: String, err: String) {
        try write("command", command)
        let kept = Sanitizer.environment.map { "\($0)='\($1)' " }.joined()
        let clean = "env -i \(kept)PATH=\"\(try BuiltMoult.directory()):$PATH\" HOME='\(path)' bash command"
        return (run(clean), try text("out"), try text("err"))
    }
}
