internal import Moult
internal import MoultBasics
internal import MoultEngine
internal import MoultStore
internal import StepKit

/// `moult status --prometheus`: the status as metrics, in the format of the textfile collector.
struct Metrics {
    let status: Status

    func write(to page: inout Page) {
        for metric in metrics where !metric.samples.isEmpty {
            page.line("# HELP moult_\(metric.name) \(metric.help)")
            page.line("# TYPE moult_\(metric.name) gauge")
            for sample in metric.samples {
                page.line("moult_\(metric.name){\(labels(sample.labels))} \(sample.value)")
            }
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

    private var metrics: [Metric] { installed + feed + parts + attempts }

    private var installed: [Metric] {
        let labels = [
            ("product", status.product), ("version", status.current.map { Generation.version(of: $0.name) } ?? ""),
            ("generation", status.current?.name ?? ""),
        ]
        return [
            Metric("info", "The installed release.", [.init(labels: labels, value: "1")]),
            Metric("installed", "Whether a release is installed.", status.current == nil ? 0 : 1),
            Metric("installed_timestamp_seconds", "Since when it is in service.", status.since?.seconds),
            Metric("release_created_timestamp_seconds", "When it was made.", status.created?.seconds),
            Metric("release_expires_timestamp_seconds", "Until when it is good.", status.expires?.seconds),
            Metric(
                "state", "The state as in status --nagios: 0 ok, 1 warning, 2 critical.",
                Int(Verdict(status).state.rawValue)),
        ]
    }

    /// As it was when it was last asked.
    private var feed: [Metric] {
        guard let known = status.known else { return [] }
        return [
            Metric("feed_serial", "The serial of the last known feed.", known.serial),
            Metric("feed_created_timestamp_seconds", "When the last known feed was made.", known.created?.seconds),
            Metric("feed_expires_timestamp_seconds", "Until when the last known feed is good.", known.expires.seconds),
            Metric(
                "newer", "Whether a release is known that should be installed and is not.", known.newest == nil ? 0 : 1),
            Metric("withdrawn", "Whether what is installed was withdrawn.", known.choice.withdrawn == nil ? 0 : 1),
        ]
    }

    private var parts: [Metric] {
        [
            Metric(
                "database_sound", "Whether a database is there and, if it is sealed, as it was proven.",
                status.databases.map { .init(labels: Self.labels($0), value: $0.state.isFault ? "0" : "1") }),
            Metric(
                "database_bytes", "The size of a database.",
                status.databases.compactMap { file in
                    file.size.map { .init(labels: Self.labels(file), value: "\($0)") }
                }),
            Metric(
                "generation_bytes", "The size of a kept generation.",
                status.generations.map {
                    .init(labels: [("generation", $0.name), ("current", "\($0.isCurrent)")], value: "\($0.size)")
                }),
            Metric("laggards", "How many still read a generation that is not in service.", status.laggards.count),
        ]
    }

    private var attempts: [Metric] {
        [
            Metric("hold", "Whether releases are on hold.", status.holds.all.isEmpty ? 0 : 1),
            Metric("holds", "Number of holds.", status.holds.all.count),
            Metric("updating", "Whether an update is running.", status.unfinished.workers.isEmpty ? 0 : 1),
            Metric(
                "interrupted", "How many updates were interrupted and are not settled.",
                status.unfinished.workers.isEmpty ? status.unfinished.updates.count : 0),
            Metric("last_timestamp_seconds", "When something was last done.", status.last?.time.seconds),
            Metric(
                "last_duration_seconds", "How long that took.",
                (status.last?.milliseconds).map { [.init(value: Self.seconds($0))] } ?? []),
            Metric("failed", "Whether an attempt failed and none succeeded since.", status.failure == nil ? 0 : 1),
        ]
    }

    private static func labels(_ file: Status.File) -> [(String, String)] {
        [("database", file.name), ("kind", file.kind.rawValue)]
    }

    private static func seconds(_ milliseconds: Int) -> String {
        let rest = String(milliseconds % 1000)
        return "\(milliseconds / 1000).\(String(repeating: "0", count: 3 - rest.count))\(rest)"
    }

    private func labels(_ more: [(String, String)]) -> String {
        ([("store", status.root)] + more).map { name, value in
            let quoted = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
            return "\(name)=\"\(quoted)\""
        }
        .joined(separator: ",")
    }
}
