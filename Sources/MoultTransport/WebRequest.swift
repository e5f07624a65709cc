internal import MoultBasics
internal import MoultFiles

/// One question to a web server, asked by the helper program.
struct WebRequest {
    let url: String
    let offset: Int
    let ifRange: String?
    let ifNoneMatch: String?

    /// Asks, hands the answer to `taker` while it comes, and gives its head.
    func perform(_ manners: Transport.RetryPolicy, _ taker: any ResponseSink, _ stopIfAsked: () throws -> Void) throws
        -> WebHead
    {
        var command = try Subprocess.Command([Helper.path()])
        command.endsWithParent = true
        let child = try Subprocess(command, input: .bytes(Array(json(manners).line.utf8)))
        var head: WebHead?
        var line: [UInt8] = []
        do {
            // The helper gives up on its own; this is for one that hangs itself.
            while let block = try child.read(patience: manners.patience + 15, stop: stopIfAsked) {
                try block.withUnsafeBytes { bytes in
                    var rest = bytes[...]
                    if head == nil {
                        let end = rest.firstIndex(of: UInt8(ascii: "\n"))
                        line += rest[..<(end ?? rest.endIndex)]
                        guard line.count < 1 << 16 else { throw Helper.confused("its first line does not end") }
                        guard let end else { return }
                        let found = try WebHead(parsing: line, source: Helper.name)
                        try taker.begin(found)
                        head = found
                        rest = rest[(end + 1)...]
                    }
                    if !rest.isEmpty { try taker.take(UnsafeRawBufferPointer(rebasing: rest)) }
                }
            }
        } catch {
            child.kill()
            throw error
        }
        return try ended(child.finish(), head)
    }

    private func json(_ manners: Transport.RetryPolicy) -> JSON {
        .compact([
            "url": .string(url), "offset": .size(offset), "ifRange": .optional(ifRange),
            "ifNoneMatch": .optional(ifNoneMatch), "patience": .size(manners.patience),
            "bandwidth": .size(manners.bandwidth),
        ])
    }

    private func ended(_ end: Subprocess.Result, _ head: WebHead?) throws -> WebHead {
        if end.succeeded {
            guard let head else { throw Helper.confused("it said nothing") }
            return head
        }
        let last = end.errors.split(separator: UInt8(ascii: "\n")).last.map { Array($0) } ?? []
        // Last words that are no JSON are no answer: then it died.
        guard end.ending == .exited(1), let said = try? JSON(parsing: last, source: Helper.name),
            let why = said["why"]?.string
        else {
            // It died: perhaps of what the server sent, perhaps of a signal to all of us. Another attempt may tell.
            throw MoultError(
                .unreachable, .busy, what: "cannot get \(url)", why: "\(Helper.name) failed: \(end.complaint)",
                now: "Try again later.")
        }
        if said["redirected"]?.bool == true {
            throw MoultError(
                .badAnswer, .refused, what: "\(url) leads to another scheme", why: why,
                now: "Name the place where the files really are, if it is one to trust.")
        }
        throw said["transient"]?.bool == true
            ? MoultError(.unreachable, .busy, what: "cannot get \(url)", why: why, now: "Try again later.")
            : MoultError(.notThere, what: "cannot get \(url)", why: why, now: "Look at the address and at the network.")
    }
}
