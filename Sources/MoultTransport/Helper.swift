internal import MoultBasics
internal import MoultFiles

/// The program that sends requests to web servers, so that commands without network access do not have to load libcurl.
enum Helper {
    static let name = "moult-fetch"

    /// Returns the path of the helper: the value of MOULT_FETCH, or a file next to this program, in an installation directory,
    /// or in PATH.
    static func path() throws -> String {
        if let named = try ProcessEnvironment.value("MOULT_FETCH") { return named }
        var places: [String] = []
        if let own = try Files.ownProgram() {
            let directory = Files.directory(of: own)
            places = ["\(directory)/\(name)", "\(Files.directory(of: directory))/libexec/moult/\(name)"]
        }
        places += ["/usr/local/libexec/moult/\(name)", "/usr/libexec/moult/\(name)"]
        places += ProcessEnvironment.searchPath.map { "\($0)/\(name)" }
        for place in places where try Files.factsThroughLinks(place)?.kind == .file { return place }
        throw MoultError(
            .helper, what: "cannot send requests to web servers", why: "\(name) is not installed next to moult",
            now: "Install it, or set MOULT_FETCH to its path.")
    }

    static func invalidReply(_ why: String) -> MoultError {
        MoultError(
            .helper, what: "\(name) sent an invalid reply", why: why,
            now: "Install the \(name) that comes with this version of moult.")
    }
}
