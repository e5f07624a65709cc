package import MoultBasics

/// A concept that `moult help` explains: more than one verb needs it.
package struct Topic: Sendable, Report {
    package let name: String
    package let summary: String
    package let text: [Prose]

    package static let all: [Topic] = [.kinds, .plans, .steps, .feeds, .patches, .exitCodes]

    package func write(to page: inout Page) {
        page.line("\(name, .heading): \(summary)")
        page.line()
        page.prose(text)
    }

    package var json: JSON {
        var page = Page(for: Terminal())
        page.prose(text)
        return ["name": .string(name), "summary": .string(summary), "text": .string(page.text)]
    }
}
