internal import MoultFiles
internal import MoultSandbox
internal import StepKit

/// A database that a plan unpacked from a bundle. It may be hostile: reading its schema may take SQLite days.
struct UncheckedTemplate {
    let name: String
    let path: String

    /// Throws unless a sandboxed process with a time limit can read the schema.
    func requireReadable(_ plan: Plan, _ scratch: String) throws {
        var time = CheckTime()
        time.fixed = plan.request.checkTimeout
        var validation = Validation(
            name: name, path: path, depth: .header, processor: time.seconds(for: try Files.facts(path)?.size ?? 0))
        validation.wantsIdentity = true
        if let failure = try Validator.available().examine([validation], scratch: "\(scratch)/exam").first?.failure {
            throw failure
        }
    }
}
