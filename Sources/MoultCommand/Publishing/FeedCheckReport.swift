internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultPublish
internal import MoultTrust

/// `moult publish --check`: checks a feed directory as a store would.
extension PublishVerb {
    static func runCheck(_ call: Call) throws -> ExitCode {
        try requireOnly(check, with: [tidy, trust, threshold], call)
        let trusted = try trustedKeys(call)
        let keys = trusted?.entries.map(\.key) ?? []
        let follow: FeedCheck.Follow = { try TrialFollow(trusting: trusted).faults(of: $0, product: $1) }
        let report =
            try registryFeed(call)?.check(follow: follow)
            ?? FeedCheck(call.required(directory)).run(tidy: call.has(tidy), follow: follow)
        call.output.print(
            FeedCheckReport(checked: report, directory: try call.required(directory), keys: keys.map(\.id)))
        return report.faults.isEmpty ? .done : .failure(.failed)
    }
}

extension PublishVerb {
    /// Returns the keys that stores are assumed to pin: the given keys, or the root keys of the given key list; nil if none are
    /// given.
    private static func trustedKeys(_ call: Call) throws -> TrustedKeys? {
        let names = call.values(trust)
        if let list = names.first, names.count == 1, list.hasSuffix(".json") {
            try refuseThreshold(call)
            guard let bytes = try Files.read(list, limit: KeyList.largest) else {
                throw call.wrongUsage("no key list at \(list)", why: "no such file")
            }
            return try KeyList(parsing: bytes, source: list).roles.root
        }
        guard !names.isEmpty else { return nil }
        return TrustedKeys(
            try names.map { TrustedKeys.Entry(key: try Keys.public($0)) }, threshold: call.number(threshold) ?? 1)
    }
}

private struct FeedCheckReport: Report {
    let checked: FeedCheck.Report
    let directory: String
    let keys: [KeyID]

    func write(to page: inout Page) {
        for fault in checked.faults {
            page.wrapped("\(page.cross) \(fault.file.map { "\($0): \(fault.why)" } ?? fault.why)")
            if let now = fault.now { page.wrapped(StyledText(now), indent: 2) }
        }
        for name in checked.removed { page.line("\("-", .removed) \(name)") }
        for name in checked.others { page.line("\("=", .dim) \(name): not part of the feed, unchanged") }
        if checked.faults.isEmpty {
            page.wrapped(
                "\(page.tick) \(checked.feed)  serial \("\(checked.serial)"), \(counted(checked.releases, "release")), valid until \(checked.expires.text(for: page.terminal))"
            )
        }
        if keys.isEmpty {
            page.wrapped(
                "signatures were not checked; to check them, specify the public key that stores trust: --trust KEY.pub")
        }
        guard !checked.leftovers.isEmpty else { return }
        for name in checked.leftovers { page.line("\("?", .warning) \(name): left over") }
        page.line("remove leftovers with: \(run: ["moult", "publish", directory, "--check", "--tidy"], .heading)")
    }

    var json: JSON {
        .record([
            "feed": checked.feed, "serial": checked.serial, "expires": checked.expires.description,
            "releases": checked.releases, "sound": checked.faults.isEmpty, "keys": keys.map(\.description),
            "faults": checked.faults.map { JSON.record(["file": $0.file, "why": $0.why, "now": $0.now?.description]) },
            "leftovers": checked.leftovers, "removed": checked.removed, "others": checked.others,
        ])
    }
}
