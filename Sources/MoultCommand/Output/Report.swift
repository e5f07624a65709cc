package import MoultBasics

/// What a verb found or did, as a value that can be written for people and for programs.
package protocol Report {
    /// Writes it for a person.
    func write(to page: inout Page)
    /// The members of its JSON object; the output adds `"format"`.
    var json: JSON { get }
}
