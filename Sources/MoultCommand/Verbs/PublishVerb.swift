internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultPublish
internal import MoultTransport
internal import MoultTrust
internal import StepKit

/// `moult publish`: adds releases to a feed that stores follow.
enum PublishVerb {
    static let directory = Argument(
        .directory(), "The directory of the feed, created if missing, or a registry: oci://HOST/NAME")
    static let manifests = Argument(
        .file("MANIFEST"), presence: .repeated, "Manifests of releases, each with its bundle in the same directory")
    static let key = Option("key", letter: "k", value: .file(), repeats: true, "The secret key that signs the feed")
    static let days = Option("days", value: .number(in: 1...3650), "Days until the feed expires (default 30)")
    static let channel = Option("channel", value: .text("NAME"), "The channel of the releases (default stable)")
    static let rollout = Option(
        "rollout", value: .number("PERCENT", in: 0...100),
        "The percentage of machines that get the new releases, or that get the release given with --release")
    static let group = Option(
        "group", value: .text("NAME"), repeats: true,
        "A group of machines that get the release at any percentage; alone, only they get it")
    static let release = Option(
        "release", value: .text("VERSION"), "The release in the feed whose percentage --rollout changes")
    static let promote = Option(
        "promote", value: .text("VERSION"), "A release in the feed to offer to the stores of another channel")
    static let to = Option("to", value: .text("CHANNEL"), "With --promote: the other channel")
    static let withdraw = Option("withdraw", value: .text("VERSION"), "Withdraw a release: stores no longer install it")
    static let reason = Option("reason", value: .text("TEXT"), "The reason for the withdrawal, shown to operators")
    static let onWithdrawn = Option(
        "on-withdrawn", value: .choice("WHAT", of: Feed.OnWithdrawn.allCases.map(\.rawValue)),
        "With --withdraw: what you recommend to stores that have the release (default keep)")
    static let trust = Option(
        "trust", value: .text("KEY"), repeats: true,
        "New keys for stores to trust: a key list, or public keys. With --check: the keys that stores trust now")
    static let threshold = Option(
        "threshold", value: .number(in: 1...16), "How many of the new keys must sign (default 1)")
    static let patches = Option(
        "patches", value: .number("N", in: 0...50),
        "Keep only patches from the newest N releases of each channel before its newest (default: from all in the feed)"
    )
    static let keepReleases = Option(
        "keep-releases", value: .number("N", in: 1...100_000),
        "Keep the newest N releases of each channel and the older ones that stores need to reach them; drop the rest")
    static let uploadWith = Option(
        "upload-with", value: .text("COMMAND"),
        "Run this shell command for each new file, for example to upload the file")
    static let fetchWith = Option(
        "fetch-with", value: .text("COMMAND"),
        "With --upload-with: the URL of the public feed, or a shell command that gets one public file")
    static let dryRun = Option("dry-run", "Show what would change for stores, and publish nothing")
    static let allowUnsigned = Option("allow-unsigned", "Publish a feed without a signature")
    static let ignoreClock = Option(
        "ignore-clock", "Publish although this machine's clock contradicts the previous feed")
    static let new = Option("new", "This is the first feed at its place")
    static let wait = Option(
        "wait", value: .number("SECONDS", in: 0...604_800), "Time to wait for another publisher (default 0)")
    static let listUploads = Option(
        "list-uploads",
        "Print all files of the feed in a safe order for uploads, with Cache-Control and content type; publish nothing")
    static let serial = Option(
        "serial", value: .number(in: 1...Fields.countLimit - 1),
        "The serial of the feed (default: one more than the last)")
    static let mount = Option("mount", value: .text("OCI"), "Reuse files of this other repository in the same registry")
    static let check = Option("check", "Check the feed as a store would, and publish nothing")
    static let tidy = Option(
        "tidy", "With --check: remove the leftovers of killed commands, and patches that are not in the feed")

    static let command = Command(
        "publish", .publishers, "add releases to a feed that stores follow",
        discussion: [
            """
            A feed is the signed list of the releases in its directory. Each file is written before the file that refers \
            to it, so readers always find a complete feed. Without a release, the command renews the feed; do that before the \
            feed expires.
            """,
            """
            If the command fails or is killed, run it again: it completes the changes that are already public and \
            undoes the others. To check a feed, use --check, and specify the public keys that stores \
            trust with --trust.
            """,
            """
            The directory can also be a repository of a container registry, oci://HOST/NAME. Each release is an \
            artifact tagged with its version, and the feed has the tag "feed". moult uses the credentials that \
            `docker login` or `skopeo login` saved (docs/hosting.md).
            """,
            """
            To copy the feed to an object store, specify a shell command with --upload-with. moult runs it once for \
            each new or changed file, in a safe order, with MOULT_FILE, MOULT_NAME, MOULT_SHA256, MOULT_CONTENT_TYPE and \
            MOULT_CACHE_CONTROL in its environment. The command or URL given with --fetch-with reads the public feed first, so \
            that releases of other publishers are not lost. If an upload fails, run the same `moult publish` again to upload \
            the rest (docs/hosting.md).
            """,
            """
            A published version is never replaced. To change keys, specify the old and the new secret key with --key \
            and the new public key with --trust. If releases and the feed have separate keys, specify with --trust the \
            key list that `moult trust` wrote (moult help keys).
            """,
        ], arguments: [directory, manifests],
        options: [
            key, SigningCommand.option, days, channel, rollout, group, release, promote, to, withdraw, reason,
            onWithdrawn, trust, threshold, patches, keepReleases, serial, new, wait, dryRun, allowUnsigned, ignoreClock,
            mount, uploadWith, fetchWith, listUploads, check, tidy, PackVerb.checkTimeout,
        ],
        rules: [
            .needs(tidy, check), .needs(reason, withdraw), .needs(onWithdrawn, withdraw), .needs(threshold, trust),
            .needs(withdraw, reason, why: "users of the release must know why"), .needs(to, promote),
            .one([release, promote], why: "--promote has a --rollout of its own"), .needs(promote, to),
        ], usesStore: false,
        examples: [
            "Publish a release:": "moult publish public releases/dailyvalue-2.1.0.json --key release.key",
            "Publish to 10 % of the machines:": "moult publish public new.json --rollout 10 -k release.key",
            "Then to all machines:": "moult publish public --release 2.1.0 --rollout 100 -k release.key",
            "Offer a release of another channel to all stores:":
                "moult publish public --promote 2.1.0 --to stable -k release.key",
            "Withdraw a release:": "moult publish public --withdraw 2.1.0 --reason 'bad names' -k release.key",
            "Withdraw a release that stores should leave at once:":
                "moult publish public --withdraw 2.1.0 --reason bad --on-withdrawn rollback",
            "Publish to a container registry:":
                "moult publish oci://registry.example.org/team/food new.json -k release.key",
            "Copy the feed to an object store:":
                "moult publish public a.json -k k.key --upload-with ./put --fetch-with ./get",
            "Check a feed:": "moult publish public --check --trust release.pub",
            "Change keys:": "moult publish public --key old.key --key new.key --trust new.pub",
        ],
        exits: [
            .failure(.failed): "nothing was published; with --check: stores would refuse the feed",
            .failure(.refused): "stores could not follow the change; the message says why",
            .failure(.stuck): "the new feed is public but incomplete: run the command again",
            .failure(.busy): "another command is publishing to the feed: try again later",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        try requireDirectory(call)
        if call.has(check) { return try runCheck(call) }
        if call.has(listUploads) { return try listFiles(call) }
        for path in call.values(manifests) { try refuseMistaken(path, call) }
        var options = PublishOptions()
        options.keys = try call.secretKeys(key)
        options.days = call.number(days) ?? options.days
        options.channel = call.value(channel) ?? options.channel
        try requireChannel(options.channel, call)
        options.patches = call.number(patches)
        options.serial = call.number(serial)
        options.keptReleases = call.number(keepReleases)
        options.upload = call.value(uploadWith).map(UploadWay.command)
        options.fetchCommand = call.value(fetchWith)
        if try registryFeed(call) == nil, call.has(uploadWith) != call.has(fetchWith) {
            throw call.wrongUsage(
                call.has(uploadWith)
                    ? "--upload-with needs --fetch-with COMMAND" : "--fetch-with needs --upload-with COMMAND",
                why: "the public feed is read before it is replaced")
        }
        options.isNew = call.has(new)
        (options.allowsUnsigned, options.ignoresClock) = (call.has(allowUnsigned), call.has(ignoreClock))
        options.wait = call.number(wait) ?? 0
        options.changes = try changes(call)
        options.tryInstall = { release, previous, _ in try call.trial().run(release, over: previous) }
        if call.value(release) == nil { (options.rollout, options.groups) = (share(call), try groups(call)) }
        if call.has(dryRun) {
            call.output.print(try preview(call, options))
            return .done
        }
        if call.output.isDialog {
            options.announce = { preview in
                call.output.lines { preview.write(to: &$0) }
                try StandardInput.confirm(
                    "Publish this now?", orElse: "nothing was published", now: "The old feed is still public.")
            }
        }
        let report = try publish(call, options)
        if let warning = try warning(report, call) { call.output.warn(warning) }
        for warning in report.warnings { call.output.warn(warning) }
        for note in report.takenIn { call.output.warn("taken in from a feed that was overwritten: \(note)") }
        call.output.print(PublishedReport(published: report, changes: options.changes))
        return .done
    }

    private static func publish(_ call: Call, _ options: PublishOptions) throws -> PublishReport {
        if let feed = try registryFeed(call) {
            Interruption.watch()
            return try Interruption.reporting(stopped) { try feed.publish(call.values(manifests), options) }
        }
        return try FeedPublisher(call.required(directory), options).publish(call.values(manifests))
    }

    private static func preview(_ call: Call, _ options: PublishOptions) throws -> PublishPreview {
        let files = call.values(manifests)
        return try registryFeed(call)?.preview(files, options)
            ?? FeedPublisher(call.required(directory), options).preview(files)
    }

    /// Returns the warning for the first signature of a feed that already has releases.
    private static func warning(_ report: PublishReport, _ call: Call) throws -> Advice? {
        guard !report.unsigned.isEmpty else { return nil }
        let releases =
            report.unsigned.count > 5
            ? "\(report.unsigned.count) earlier releases" : report.unsigned.map(\.description).joined(separator: ", ")
        let place = try call.required(directory)
        return
            "\(report.feed) was not signed before, and the signature also covers what it already contained: \(releases). "
            + "If one of these releases is not yours, withdraw it: "
            + "\(moult: "publish", place, "--withdraw", "VERSION", "--reason", "TEXT", "--key", "FILE")"
    }

    /// Throws if the call has a manifest, or an option that means nothing with `mode`, which publishes nothing.
    static func requireOnly(_ mode: Option, with allowed: [Option], _ call: Call) throws {
        let names = ([mode] + allowed).map(\.name)
        let option = call.command.ownOptions.first { call.has($0) && !names.contains($0.name) }
        guard let other = option.map({ "--\($0.name)" }) ?? call.values(manifests).first else { return }
        throw call.wrongUsage(
            "--\(mode.name) and \(other) cannot be used together", why: "--\(mode.name) publishes nothing")
    }

    private static func listFiles(_ call: Call) throws -> ExitCode {
        _ = try registryFeed(call)
        try requireOnly(listUploads, with: [], call)
        let files = try FeedUpload.files(in: call.required(directory))
        let uploads: [JSON] = files.map {
            JSON.record([
                "file": $0.name, "size": $0.size, "sha256": $0.sha256, "cacheControl": $0.cacheControl,
                "contentType": $0.contentType,
            ])
        }
        call.output.print(json: .record(["uploads": uploads])) { page in
            var table = Table(.left, .left, .left)
            for file in files { table.row("\(file.name)", "\(file.cacheControl)", "\(file.contentType)") }
            page.table(table)
        }
        return .done
    }

    /// Returns the feed if it is in a registry; otherwise nil.
    static func registryFeed(_ call: Call) throws -> RegistryFeed? {
        func repository(_ text: String, _ name: String) throws -> Repository {
            let (repository, tag) = try Repository.parse(Address(text))
            guard tag == nil else {
                throw call.wrongUsage(
                    "\(name) must be a repository without a tag", why: "moult chooses the tags itself")
            }
            return repository
        }
        let place = try call.required(directory)
        guard Repository.isRegistryAddress(place) else {
            if call.has(mount) { throw call.wrongUsage("--mount needs a feed in a registry") }
            return nil
        }
        if call.has(tidy) {
            throw call.wrongUsage("--tidy needs a directory", why: "a registry removes its own leftovers")
        }
        for option in [uploadWith, fetchWith, listUploads] where call.has(option) {
            throw call.wrongUsage("--\(option.name) needs a directory", why: "moult itself pushes to a registry")
        }
        return RegistryFeed(
            try repository(place, directory.name), uploads,
            mountingFrom: try call.value(mount).map { try repository($0, "--mount") })
    }

    private static let stopped = "stopped; the old feed is still public"

    /// The transport for uploads, which may take hours for large bundles; a stalled connection is ended much earlier.
    private static var uploads: Transport {
        var retryPolicy = Transport.RetryPolicy()
        retryPolicy.fileDeadline = 86_400
        return Transport(retryPolicy, budget: NetworkBudget(seconds: 7 * 86_400)) { try Interruption.check(stopped) }
    }

    static func refuseThreshold(_ call: Call) throws {
        guard call.has(threshold) else { return }
        throw call.wrongUsage(
            "--threshold cannot be used with a key list", why: "the list has the threshold of each role")
    }

    private static func requireChannel(_ name: String, _ call: Call) throws {
        guard let fault = PlainName.databaseFault(name) else { return }
        throw call.wrongUsage("\"\(name)\" cannot be a channel", why: "it \(fault)")
    }

    /// Without a percentage, only the machines of the groups get the release.
    private static func share(_ call: Call) -> Int { call.number(rollout) ?? (call.has(group) ? 0 : 100) }

    private static func groups(_ call: Call) throws -> [String] {
        let names = call.values(group)
        for name in names {
            guard let fault = PlainName.databaseFault(name) else { continue }
            throw call.wrongUsage("\"\(name)\" cannot be a group", why: "it \(fault)")
        }
        if names.contains(Feed.Release.firstGroup) {
            throw call.wrongUsage(
                "\"\(Feed.Release.firstGroup)\" cannot be a group",
                why: "these machines are in every percentage but zero")
        }
        return names
    }

    private static func requireNoManifest(_ option: Option, _ call: Call) throws {
        guard let other = call.values(manifests).first else { return }
        throw call.wrongUsage(
            "--\(option.name) and \(other) cannot be used together",
            why: "--rollout would not apply to the new release: publish it first")
    }

    private static func changes(_ call: Call) throws -> [PublishOptions.Change] {
        if call.has(channel), call.values(manifests).isEmpty {
            throw call.wrongUsage(
                "--channel needs a MANIFEST", why: "--channel sets the channel of the releases to publish")
        }
        var changes: [PublishOptions.Change] = []
        if let version = try call.version(withdraw) {
            changes.append(
                .withdraw(
                    version, reason: try call.required(reason),
                    call.value(onWithdrawn).flatMap { Feed.OnWithdrawn(rawValue: $0) }))
        }
        if let version = try call.version(promote) {
            let channel = try call.required(to)
            try requireChannel(channel, call)
            try requireNoManifest(promote, call)
            changes.append(.promote(version, to: channel, share: share(call), groups: try groups(call)))
        }
        if let version = try call.version(release) {
            guard call.has(rollout) || call.has(group) else {
                throw call.wrongUsage("--release needs --rollout PERCENT")
            }
            try requireNoManifest(release, call)
            changes.append(.roll(version, to: share(call), groups: try groups(call)))
        } else if call.has(rollout) || call.has(group), !call.has(promote), call.values(manifests).isEmpty {
            throw call.wrongUsage(
                "--\(call.has(rollout) ? rollout.name : group.name) needs a MANIFEST or --release VERSION",
                why: "a rollout percentage belongs to a release")
        }
        if let list = call.values(trust).first, call.values(trust).count == 1, list.hasSuffix(".json") {
            try refuseThreshold(call)
            changes.append(.keyList(list))
        } else if call.has(trust) {
            changes.append(
                .trust(try call.values(trust).map { try Keys.public($0) }, threshold: call.number(threshold) ?? 1))
        }
        return changes
    }

    private struct PublishedReport: Report {
        let published: PublishReport
        let changes: [PublishOptions.Change]

        func write(to page: inout Page) {
            for change in changes {
                switch change {
                case .withdraw(let version, let reason, let recommended):
                    page.wrapped("\("-", .removed) \("\(version)") is withdrawn: \(reason)\(recommended.clause)")
                case .roll(let version, let share, let groups):
                    page.wrapped(
                        "\("~", .changed) \("\(version)") is rolled out to \(Feed.Release.share(share, groups))")
                case .promote(let version, let channel, let share, let groups):
                    page.wrapped(
                        "\("~", .changed) \("\(version)") is promoted to \(channel), for \(Feed.Release.share(share, groups))"
                    )
                case .trust, .keyList: break
                }
            }
            for entry in published.preview?.entries ?? [] where entry.change == .added && !entry.release.isForAll {
                page.wrapped("\("+", .added) \("\(entry.release.version)") for \(entry.release.audience)")
            }
            // The signatures are left out, because the line for the feed names the signer.
            for file in published.files where !file.hasSuffix(".minisig") { page.line("\("+", .added) \(file)") }
            for file in published.removed { page.line("\("-", .removed) \(file)") }
            if !published.dropped.isEmpty {
                page.wrapped(
                    "\("-", .removed) no longer in the feed: \(published.dropped.map(\.description).joined(separator: ", "))"
                )
            }
            let signed =
                published.signers.isEmpty
                ? "not signed" : "signed by \(published.signers.map(\.description).joined(separator: " and "))"
            let (sign, new): (StyledText, String) =
                published.isNew ? ("\("+", .added)", "new feed, ") : ("\("~", .changed)", "")
            page.wrapped(
                "\(sign) \(published.feed)  \(new)serial \("\(published.serial)"), \(counted(published.releases, "release")), \(signed), valid until \(published.expires.text(for: page.terminal))"
            )
            if !published.uploaded.isEmpty { page.line("uploaded \(counted(published.uploaded.count, "file"))") }
        }

        var json: JSON {
            .record([
                "feed": published.feed, "serial": published.serial, "expires": published.expires.description,
                "releases": published.releases, "added": published.added.map(\.description), "files": published.files,
                "removed": published.removed, "dropped": published.dropped.map(\.description),
                "uploaded": published.uploaded, "changes": published.preview?.json, "takenIn": published.takenIn,
                "warnings": published.warnings.map(\.description), "signers": published.signers.map(\.description),
            ])
        }
    }
}
