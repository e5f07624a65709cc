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

    /// Returns the error if the helper is there and cannot be started, or cannot load its libraries.
    static func cannotStart(_ why: String) -> MoultError {
        MoultError(
            .helper, what: "cannot send requests to web servers", why: why,
            now: "\(name) needs the GNU C library, libstdc++ and libcurl. On Debian and Ubuntu, install them with: "
                + "\(run: ["apt", "install", "libcurl4", "libstdc++6", "ca-certificates"]). It does not run on systems with musl, such as Alpine: "
                + "use an image of Debian there, or a feed in a directory.")
    }

    /// Whether the program ended because the loader did not find a library.
    static func lacksLibrary(_ complaint: String) -> Bool {
        complaint.contains("error while loading shared libraries") || complaint.contains("Error loading shared library")
    }

    static func invalidReply(_ why: String) -> MoultError {
        MoultError(
            .helper, what: "\(name) sent an invalid reply", why: why,
            now: "Install the \(name) that comes with this version of moult.")
    }
}
