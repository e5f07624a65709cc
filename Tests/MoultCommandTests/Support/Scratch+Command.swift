import MoultLibc
import TestSupport

extension Scratch {
    /// Runs a shell command in the directory, with `moult` as the built command and an environment without variables
    /// that affect its output.
    func moult(_ command: String) throws -> (status: Int32, out: String, err: String) {
        try write("command", command)
        let kept = Sanitizer.environment.map { "\($0)='\($1)' " }.joined()
        let clean = "env -i \(kept)PATH=\"\(Self.built):$PATH\" HOME='\(path)' bash command"
        return (run(clean), try text("out"), try text("err"))
    }

    /// The directory of the build products, which also contains the tests.
    static let built: String = {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &path, path.count)
        let text = String(decoding: path.prefix(max(0, count)).map(UInt8.init(bitPattern:)), as: UTF8.self)
        return text.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" }
    }()
}
