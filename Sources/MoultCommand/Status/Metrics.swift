internal import Moult
internal import MoultBasics
internal import StepKit

/// `moult status --prometheus`: the status as metrics for the node exporter's textfile collector.
///
/// The names and labels are a stable interface: dashboards and alert rules depend on them, including those in
/// `integrations/prometheus`.
struct Metrics {
    let store: StoreLayout
    /// The status; nil if the store cannot be read. The only metric then reports that.
    let status: Status?
    /// The sets in quarantine; nil if this user may not read the quarantine.
    var quarantine: [QuarantineShelf.Set]?

    func write(to page: inout Page) {
        for metric in metrics where !metric.samples.isEmpty {
            page.line("# HELP moult_\(metric.name) \(metric.help)")
            page.line("# TYPE moult_\(metric.name) gauge")
            for sample in metric.samples { page.line("moult_\(metric.name){\(labels(sample.labels))} \(sample.value)") }
        }
    }

    private struct Metric {
        struct Sample {
            var labels: [(String, String)] = []
            let value: String
        }
        let name: String
        let help: String
        let samples: [Sample]

        init(_ name: String, _ help: String, _ samples: [Sample]) {
            (self.name, self.help, self.samples) = (name, help, samples)
        }

        init(_ name: String, _ help: String, _ value: Int?) {
            self.init(name, help, value.map { [Sample(value: "\($0)")] } ?? [])
        }
    }

    private var metrics: [Metric] {
        let readable = Metric("up", "Whether the store can be read.", status == nil ? 0 : 1)
        let build = Metric(
            "build_info", "The version of moult.", [.init(labels: [("version", moultVersion.description)], value: "1")])
        guard let status else { return [readable, build] }
        return [readable, build] + installed(status) + feed(status) + parts(status) + kept + attempts(status)
    }

    private func installed(_ status: Status) -> [Metric] {
        let labels = [
            ("product", status.product), ("version", status.current.map { Generation.version(of: $0.name) } ?? ""),
            ("generation", status.current?.name ?? ""),
        ]
        let findings = status.findings()
        return [
            Metric("info", "The installed release.", [.init(labels: labels, value: "1")]),
            Metric("installed", "Whether a release is installed.", status.current == nil ? 0 : 1),
            Metric(
                "installed_timestamp_seconds", "When the installed release was put into service.", status.since?.seconds
            ),
            Metric(
                "release_created_timestamp_seconds", "When the installed release was created.", status.created?.seconds),
            Metric("release_expires_timestamp_seconds", "When the installed release expires.", status.expires?.seconds),
            Metric(
                "too_old", "Whether the installed release is older than maxAge.", status.age.map { $0.isOver() ? 1 : 0 }
            ),
            Metric(
                "state", "The state that status --nagios reports: 0 ok, 1 warning, 2 critical.",
                Int(NagiosLine.State(findings).rawValue)),
            Metric(
                "findings", "The number of findings that status --nagios reports.",
                [Finding.Severity.warning, .critical].map { severity in
                    let count = findings.count { $0.severity == severity }
                    return .init(labels: [("severity", severity.rawValue)], value: "\(count)")
                }),
            Metric(
                "finding", "The number of findings of a kind.",
                Self.kinds(of: findings).map { kind, severity, count in
                    .init(labels: [("kind", kind), ("severity", severity)], value: "\(count)")
                }),
        ]
    }

    private func feed(_ status: Status) -> [Metric] {
        let followed = Metric("feed_followed", "Whether a feed is configured.", status.feed == nil ? 0 : 1)
        let channel = Metric(
            "feed_info", "The channel of the feed.",
            status.channel.map { [.init(labels: [("channel", $0)], value: "1")] } ?? [])
        let keys = Metric(
            "key_list_expires_timestamp_seconds", "When the list of trusted keys expires.",
            status.keyList?.expires?.seconds)
        let revoked = Metric(
            "revoked", "Whether only revoked keys have signed the installed release.",
            status.keys == nil ? nil : status.revoked == nil ? 0 : 1)
        guard let known = status.known else { return [followed, channel, keys, revoked] }
        return [
            followed, channel, keys, revoked, Metric("feed_serial", "The serial of the last known feed.", known.serial),
            Metric("feed_created_timestamp_seconds", "When the last known feed was created.", known.created?.seconds),
            Metric("feed_expires_timestamp_seconds", "When the last known feed expires.", known.expires.seconds),
            Metric("newer", "Whether a newer release is known and not installed.", known.newest == nil ? 0 : 1),
            Metric(
                "withdrawn", "Whether the publisher has withdrawn the installed release.",
                known.choice.withdrawn == nil ? 0 : 1),
        ]
    }

    private func parts(_ status: Status) -> [Metric] {
        [
            Metric(
                "database_sound",
                "Whether a database exists and has no known fault; absent if this user may not read it.",
                status.databases.filter { $0.content?.kind != .denied }.map {
                    .init(labels: Self.labels($0), value: $0.fault == nil ? "1" : "0")
                }),
            Metric(
                "database_verified",
                "Whether a database is known to be the verified file; 0 if it has a fault, is a copy that has not been read, or this user may not read it.",
                status.databases.map {
                    let isVerified = $0.fault == nil && ![.unverified, .denied].contains($0.content?.kind)
                    return .init(labels: Self.labels($0), value: isVerified ? "1" : "0")
                }),
            Metric(
                "database_bytes", "The size of a database.",
                status.databases.compactMap { file in file.size.map { .init(labels: Self.labels(file), value: "\($0)") }
                }),
            Metric(
                "generation_bytes", "The size of a kept generation.",
                status.generations.map {
                    .init(labels: [("generation", $0.name), ("current", "\($0.isCurrent)")], value: "\($0.size)")
                }),
            Metric("laggards", "The number of readers of a generation that is not in service.", status.laggards.count),
        ]
    }

    /// The metrics of the quarantine. Caches are removed if they need too much space; other sets stay until the operator
    /// removes them.
    private var kept: [Metric] {
        guard let quarantine else { return [] }
        func samples(_ value: ([QuarantineShelf.Set]) -> Int) -> [Metric.Sample] {
            [("cache", true), ("data", false)].map { name, isCache in
                .init(labels: [("content", name)], value: "\(value(quarantine.filter { $0.isCache == isCache }))")
            }
        }
        return [
            Metric("quarantine_sets", "The number of databases in quarantine.", samples(\.count)),
            Metric(
                "quarantine_bytes", "The size of the databases in quarantine.",
                samples { sets in sets.reduce(0) { $0 + $1.size } }),
        ]
    }

    private func attempts(_ status: Status) -> [Metric] {
        [
            Metric("hold", "Whether releases are on hold.", status.holds.all.isEmpty ? 0 : 1),
            Metric("holds", "The number of holds.", status.holds.all.count),
            Metric(
                "holds_damaged", "Whether the record of holds is damaged; if so, no release can be installed.",
                status.holds.fault == nil ? 0 : 1),
            Metric("updating", "Whether an update is running.", status.unfinished.workers.isEmpty ? 0 : 1),
            Metric(
                "interrupted", "The number of interrupted updates that are neither finished nor undone.",
                status.unfinished.workers.isEmpty ? status.unfinished.updates.count : 0),
            Metric("last_timestamp_seconds", "When the last operation ended.", status.last?.time.seconds),
            Metric(
                "last_duration_seconds", "How long the last operation took.",
                (status.last?.milliseconds).map { [.init(value: Self.seconds($0))] } ?? []),
            Metric(
                "last_result", "The outcome of the last operation: 1 for that outcome, 0 for the others.",
                status.last.map { last in
                    History.Entry.Outcome.allCases.map {
                        .init(labels: [("outcome", $0.rawValue)], value: last.outcome == $0 ? "1" : "0")
                    }
                } ?? []),
            Metric(
                "failed", "Whether an attempt failed and no later attempt succeeded.",
                status.findings().contains { $0.kind == .failure } ? 1 : 0),
            Metric("writable", "Whether the file system of the store takes updates.", status.obstacle == nil ? 1 : 0),
        ] + (status.attempt.map(last) ?? [])
    }

    /// The last command that asked the feed or began an update.
    private func last(_ attempt: Attempt) -> [Metric] {
        [
            Metric(
                "last_attempt_timestamp_seconds", "When moult last asked the feed or began an update.",
                attempt.time.seconds),
            Metric(
                "last_success_timestamp_seconds", "When such an attempt last succeeded.", attempt.lastSuccess?.seconds),
            Metric(
                "last_attempt_duration_seconds", "How long the last attempt took.",
                [.init(value: Self.seconds(attempt.milliseconds))]),
            Metric(
                "last_attempt_received_bytes", "The bytes that the last attempt received from servers.", attempt.bytes),
            Metric(
                "rollout_position_ratio",
                "The share of machines that get the newest release of the feed before this one.",
                attempt.rollout.map { [.init(labels: [("version", $0.version)], value: "\($0.position / 100)")] } ?? []),
            Metric(
                "failing_since_timestamp_seconds", "When the first of the failed attempts was.",
                attempt.failingSince?.seconds),
            Metric("failed_attempts", "The number of failed attempts since the last success.", attempt.failures),
            Metric(
                "attempt_error", "The error of the last attempt, with its code and its sentence.",
                attempt.failure.map { [.init(labels: [("code", $0.code), ("what", $0.what)], value: "1")] } ?? []),
            Metric(
                "not_reloaded", "The number of consumers that did not reload after the last update.",
                attempt.notReloaded.count),
        ]
    }

    private static func kinds(of findings: [Finding]) -> [(kind: String, severity: String, count: Int)] {
        Dictionary(grouping: findings.filter { $0.severity != .note }) { [$0.kind.rawValue, $0.severity.rawValue] }
            .map { ($0.key[0], $0.key[1], $0.value.count) }.sorted { ($0.0, $0.1) < ($1.0, $1.1) }
    }

    private static func labels(_ state: DatabaseState) -> [(String, String)] {
        [("database", state.database.name), ("kind", state.database.kind.rawValue)]
    }

    private static func seconds(_ milliseconds: Int) -> String {
        let rest = String(milliseconds % 1000)
        return "\(milliseconds / 1000).\(String(repeating: "0", count: 3 - rest.count))\(rest)"
    }

    private func labels(_ more: [(String, String)]) -> String {
        ([("store", store.root)] + more).map { name, value in
            let quoted = value.replacing(scalar: "\\", with: "\\\\").replacing(scalar: "\"", with: "\\\"")
                .replacing(scalar: "\n", with: "\\n")
            return "\(name)=\"\(quoted)\""
        }.joined(separator: ",")
    }
}
