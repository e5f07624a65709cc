internal import MoultBasics

struct ImportRequest {
    let file: String
    let table: String
    let schema: String?
    let skip: Int
    let isVerbose: Bool
    /// The format selected by an option; nil if the script's mode determines it.
    let format: RowFormat?

    /// Parses `[--csv|--ascii] [--skip N] [--schema S] [-v] FILE TABLE`, in any order.
    init(_ command: DotCommand) throws {
        func reject(_ why: String, hint: Advice? = nil) -> MoultError {
            MoultError(
                .script, what: "\(command.place): invalid .import command", why: why,
                now: (hint.map { "\($0) " } ?? "")
                    + "Usage: .import [--csv|--ascii] [--skip N] [--schema S] [-v] FILE TABLE")
        }
        var names: [String] = []
        var format: RowFormat?
        var skip = 0
        var schema: String?
        var isVerbose = false
        var words = try command.names[...]
        while let word = words.popFirst() {
            // An option may start with one dash or two.
            let option = word.hasPrefix("--") ? String(word.dropFirst()) : word
            switch option {
            case "-csv": format = .csv
            case "-ascii": format = .ascii
            case "-v": isVerbose = true
            case "-skip":
                guard let text = words.popFirst(), let number = Int(text), number >= 0 else {
                    throw reject("\(word) needs a number of rows")
                }
                skip = number
            case "-schema":
                guard let name = words.popFirst() else { throw reject("\(word) needs the name of a schema") }
                schema = name
            case _ where option.hasPrefix("-"):
                let hint = didYouMean(word, among: ["--csv", "--ascii", "--skip", "--schema", "-v"])
                throw reject("unknown option \(word)", hint: hint)
            default: names.append(word)
            }
        }
        if names.count > 2 { throw reject("unexpected argument \"\(names[2])\"") }
        guard names.count == 2 else { throw reject(names.isEmpty ? "FILE is missing" : "TABLE is missing") }
        (file, table) = (names[0], names[1])
        (self.schema, self.skip, self.isVerbose, self.format) = (schema, skip, isVerbose, format)
    }
}
