internal import MoultBasics
internal import MoultStore
internal import StepKit

/// What `moult --version` shows.
struct VersionReport: Report {
    func write(to page: inout Page) { page.line("moult \(moultVersion)") }
    var json: JSON { ["version": .string(moultVersion.description)] }
}
