internal import MoultBasics

/// The version of this command, SemVer 2.0.
package let moultVersion = "0.1.0"

/// What `moult --version` shows.
struct VersionReport: Report {
    func write(to page: inout Page) { page.line("moult \(moultVersion)") }
    var json: JSON { ["version": .string(moultVersion)] }
}
