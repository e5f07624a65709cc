internal import Moult
internal import MoultBasics
internal import MoultPublish
internal import MoultTransport
internal import MoultTrust
internal import StepKit

/// `moult publish`: puts releases into a directory of static files that stores follow.
enum PublishVerb {
    static let directory = Argument(
        .directory(),
        "A directory for a web server or USB stick, made if missing; or a repository of a registry, oci://HOST/NAME"
    )
    static let manifests = Argument(
        .file("MANIFEST"), presence: .repeated, "Sealed manifests of releases; their bundles lie beside them")
    static let key = Option(
        "key", letter: "k", value: .file(), repeats: true,
        "The secret key that signs; more than once for several signers")
    static let days = Option("days", value: .number(in: 1...3650), "How long the feed is good, 30 if not said")
    static let channel = Option("channel", value: .text("NAME"), "The channel of the releases, stable if not said")
    static let rollout = Option(
        "rollout", value: .number("PERCENT", in: 0...100), "The share of machines that get the releases, or --release")
    static let release = Option(
        "release", value: .text("VERSION"), "Set --rollout of this release, which is in the feed")
    static let withdraw = Option(
        "withdraw", value: .text("VERSION"), "Take a release back: it is installed nowhere any more")
    static let reason = Option("reason", value: .text("TEXT"), "Why it is withdrawn; users of the release will read it")
    static let trust = Option(
        "trust", value: .text("KEY"), repeats: true,
        "The keys that stores trust from now on: a list of moult trust, or public keys, each with --trust")
    static let threshold = Option(
        "threshold", value: .number(in: 1...16), "How many of the new keys must sign, 1 if not said")
    static let patches = Option(
        "patches", value: .number("N", in: 0...50),
        "Keep patches from the last N releases before the newest one, 3 if not said")
    static let keepReleases = Option(
        "keep-releases", value: .number("N", in: 1...100_000),
        "Keep the newest N releases of each channel and what stores need to reach them; drop older ones")
    static let uploadWith = Option(
        "upload-with", value: .text("COMMAND"),
        "Then copy new files to another place, each with this shell command; see --list-uploads")
    static let listUploads = Option(
        "list-uploads",
        "Print all files of the feed in a safe order for uploads, with Cache-Control and type, and publish nothing")
    static let serial = Option(
        "serial", value: .number(in: 1...Feed.highestSerial), "The feed's serial, one more than the last if not said")
    static let mount = Option(
        "mount", value: .text("OCI"),
        "Another repository of the same registry: its files are reused and not uploaded")
    static let check = Option("check", "Check the directory as a store would, and publish nothing")
    static let tidy = Option(
        "tidy", "With --check: remove what killed commands left, and patches that the feed does not list")

    static let command = Command(
        "publish", .publishers, "add releases to a feed that stores follow",
        discussion: [
            """
            Everything is a static file: any web server serves it, any object store or stick carries it. Bundles come \
            before manifests and manifests before the feed, so that readers find a complete feed at every moment. \
            Without a release the feed is renewed, which must happen before its days are over.
            """,
            """
            After a failure or a kill, give the same command again: it completes what is public already, and undoes \
            what was not. To see whether a feed is sound, use --check, and name with --trust the public keys that \
            stores trust.
            """,
            """
            The directory may also be a repository of a container registry, oci://HOST/NAME: each release is then an \
            artifact under its version, and the feed one under the tag "feed". moult logs in with the credentials of \
            docker or skopeo login (docs/registries.md).
            """,
            """
            To copy the feed to an object store, name a command with --upload-with: it is run for each new file, the feed \
            last, and gets MOULT_FILE, MOULT_NAME, MOULT_SHA256, MOULT_CONTENT_TYPE and MOULT_CACHE_CONTROL in its \
            environment. If it fails, the same moult publish again uploads the rest (docs/object-storage.md).
            """,
            """
            A version that was published is never replaced. To change keys, name the old key and the new one with \
            --key, and the new public key with --trust: stores that trust the old one then trust the new one. Where \
            releases and feed have different keys, --trust names the list that moult trust made (moult help keys).
            """,
        ],
        arguments: [directory, manifests],
        options: [
            key, days, channel, rollout, release, withdraw, reason, trust, threshold, patches, keepReleases, serial,
            mount, uploadWith, listUploads, check, tidy, PackVerb.checkTimeout,
        ],
        usesStore: false,
        examples: [
            .init("Publish a release:", "moult publish public releases/dailyvalue-2.1.0.json --key release.key"),
            .init("To a tenth of all machines first:", "moult publish public new.json --rollout 10 -k release.key"),
            .init("To all of them:", "moult publish public --release 2.1.0 --rollout 100 -k release.key"),
            .init(
                "Take it back:", "moult publish public --withdraw 2.1.0 --reason 'bad names' -k release.key"),
            .init(
                "To a container registry:",
                "moult publish oci://registry.example.org/team/food new.json -k release.key"),
            .init(
                "And to an object store:",
                #"moult publish public new.json -k release.key --upload-with 'rclone copyto -I "$MOULT_FILE" cdn:"$MOULT_NAME"'"#
            ),
            .init("Is the feed sound?", "moult publish public --check --trust release.pub"),
            .init(
                "Change keys:", "moult publish public --key old.key --key new.key --trust new.pub"),
        ],
        exits: [
            .init(.failure(.failed), "the old feed is public; --check: stores would refuse something"),
            .init(.failure(.refused), "it would break what stores rely on; the message says what"),
            .init(.failure(.stuck), "the new feed is public, but not complete: give the command again"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        if call.has(check) { return try runCheck(call) }
        if call.has(tidy) { throw call.wrongUsage("--tidy needs --check") }
        if call.has(listUploads) { return try listFiles(call) }
        var options = PublishOptions()
        options.keys = try call.values(key).map { try call.secretKey($0) }
        options.days = call.number(days) ?? options.days
        options.channel = call.value(channel) ?? options.channel
        options.patches = call.number(patches) ?? options.patches
        options.serial = call.number(serial)
        options.keptReleases = call.number(keepReleases)
        options.uploadCommand = call.value(uploadWith)
        options.changes = try changes(call)
        options.tryInstall = { try call.trial(in: $2).run($0, over: $1) }
        if call.value(release) == nil { options.rollout = call.number(rollout) ?? 100 }
        let report = try publish(call, options)
        call.output.print(PublishedReport(published: report))
        return .done
    }

    private static func publish(_ call: Call, _ options: PublishOptions) throws -> PublishReport {
        if let feed = try registryFeed(call) {
            Interruption.watch()
            return try Interruption.telling(stopped) { try feed.publish(call.values(manifests), options) }
        }
        return try FeedPublisher(call.required(directory), options).publish(call.values(manifests))
    }

    private static func listFiles(_ call: Call) throws -> ExitCode {
        if let other = call.values(manifests).first ?? call.values(key).first {
            throw call.wrongUsage("--list-uploads and \(other) exclude each other", why: "a list publishes nothing")
        }
        _ = try registryFeed(call)
        call.output.print(UploadList(files: try FeedUpload.files(in: call.required(directory))))
        return .done
    }

    /// The feed, if it is in a registry.
    static func registryFeed(_ call: Call) throws -> RegistryFeed? {
        func repository(_ text: String, _ name: String) throws -> Repository {
            let (repository, tag) = try Repository.parse(Address(text))
            guard tag == nil else {
                throw call.wrongUsage(
                    "\(name) must name a repository without a tag", why: "moult chooses the tags itself")
            }
            return repository
        }
        let place = try call.required(directory)
        guard Repository.isMeant(place) else {
            if call.has(mount) { throw call.wrongUsage("--mount needs a feed in a registry") }
            return nil
        }
        if call.has(tidy) {
            throw call.wrongUsage("--tidy needs a directory", why: "a registry removes its own leftovers")
        }
        for option in [uploadWith, listUploads] where call.has(option) {
            throw call.wrongUsage("--\(option.name) needs a directory", why: "moult itself pushes to a registry")
        }
        return RegistryFeed(
            try repository(place, directory.name), uploads,
            mountingFrom: try call.value(mount).map { try repository($0, "--mount") })
    }

    private static let stopped = "stopped; the old feed is public"

    /// Uploads of large bundles may take hours; a connection that stands still ends much earlier.
    private static var uploads: Transport {
        var manners = Transport.RetryPolicy()
        manners.fileDeadline = 86_400
        return Transport(manners, budget: NetworkBudget(seconds: 7 * 86_400)) {
            try Interruption.check(stopped)
        }
    }

    private static func changes(_ call: Call) throws -> [PublishOptions.Change] {
        var changes: [PublishOptions.Change] = []
        if let version = try call.version(withdraw) {
            guard let why = call.value(reason) else {
                throw call.wrongUsage("--withdraw needs --reason TEXT", why: "users of the release must know why")
            }
            changes.append(.withdraw(version, reason: why))
        }
        if let version = try call.version(release) {
            guard let share = call.number(rollout) else { throw call.wrongUsage("--release needs --rollout PERCENT") }
            changes.append(.roll(version, to: share))
        } else if call.has(rollout), call.values(manifests).isEmpty {
            throw call.wrongUsage("--rollout needs a MANIFEST or --release VERSION", why: "it is a release's share")
        }
        if let list = call.values(trust).first, call.values(trust).count == 1, list.hasSuffix(".json") {
            changes.append(.keyList(list))
        } else if call.has(trust) {
            changes.append(
                .trust(try call.values(trust).map { try Keys.public($0) }, threshold: call.number(threshold) ?? 1))
        }
        return changes
    }
}

private struct PublishedReport: Report {
    let published: PublishReport

    func write(to page: inout Page) {
        for file in published.files { page.line("\("+", .added) \(file)") }
        for file in published.removed { page.line("\("-", .removed) \(file)") }
        if !published.dropped.isEmpty {
            page.wrapped(
                "\("-", .removed) not in the feed any more: \(published.dropped.map(\.description).joined(separator: ", "))"
            )
        }
        let signed =
            published.signers.isEmpty
            ? "not signed" : "signed by \(published.signers.map(\.description).joined(separator: " and "))"
        page.wrapped(
            "\("~", .changed) \(published.feed)  serial \("\(published.serial)"), \(counted(published.releases, "release")), \(signed), good until \(published.expires.text(for: page.terminal))"
        )
        if !published.uploaded.isEmpty { page.line("uploaded \(counted(published.uploaded.count, "file"))") }
    }

    var json: JSON {
        [
            "feed": .string(published.feed), "serial": .size(published.serial),
            "expires": .string(published.expires.description), "releases": .size(published.releases),
            "added": .array(published.added.map { .string($0.description) }),
            "files": .array(published.files.map { .string($0) }),
            "removed": .array(published.removed.map { .string($0) }),
            "dropped": .array(published.dropped.map { .string($0.description) }),
            "uploaded": .array(published.uploaded.map { .string($0) }),
            "signers": .array(published.signers.map { .string($0.description) }),
        ]
    }
}

/// The files of a feed in the order of their upload.
private struct UploadList: Report {
    let files: [FeedFile]

    func write(to page: inout Page) {
        var table = Table(.left, .left, .left)
        for file in files { table.row("\(file.name)", "\(file.cacheControl)", "\(file.contentType)") }
        page.table(table)
    }

    var json: JSON {
        [
            "uploads": .array(
                files.map {
                    [
                        "file": .string($0.name), "size": .size($0.size), "sha256": .string($0.sha256),
                        "cacheControl": .string($0.cacheControl), "contentType": .string($0.contentType),
                    ]
                })
        ]
    }
}
