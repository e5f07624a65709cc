import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import MoultSQLite
import StepKit
import TestSupport
import Testing

#if DEBUG
    /// Updates of writable databases in which the first, second, … system call fails: only this call, or all calls from
    /// then on.
    @Suite(.tags(.thorough, .slow)) struct WritableFaultTests {
        enum Flow: String, CaseIterable, Sendable {
            case rollbackMode, inWALMode

            var mode: String { rawValue.hasSuffix("WALMode") ? "wal" : "delete" }
        }

        /// Makes a release with a shared, a user and a read-only database; the second release changes all three.
        private static func release(_ maker: ReleaseMaker, _ number: Int) throws -> String {
            let more: [JSON.Member] = [.init("preserve", [["table": "food", "where": "mine = 1"]])]
            let food = """
                CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT, mine INTEGER NOT NULL DEFAULT 0);
                INSERT INTO food(id, name) VALUES(1, 'egg \(number)');
                """
            let done = number == 2 ? ", done INTEGER" : ""
            return try maker.make(
                "\(number).0.0", sequence: number,
                [
                    .shared("pantry", food, more: more),
                    .user(
                        "user", "CREATE TABLE note(text TEXT\(done)); PRAGMA user_version = \(number);",
                        migrations: number == 2
                            ? ["m/0002.sql": "ALTER TABLE note ADD COLUMN done INTEGER; PRAGMA user_version = 2;"] : [:]
                    ),
                    .reference("codes", "CREATE TABLE codes(release); INSERT INTO codes VALUES(\(number));"),
                ])
        }

        /// Returns what apps find: the release of each database, user data, and the journal modes that the apps have
        /// set.
        private static func state(_ store: String) throws -> [String] {
            func rows(_ name: String, _ sql: String) throws -> String {
                let connection = try Connection(
                    path: "\(store)/\(name).db", access: name == "codes" ? .immutable : .readWrite)
                defer { withExtendedLifetime(connection) {} }
                return try connection.query(sql).map { "\($0)" }.joined()
            }
            return try [
                rows("codes", "SELECT release FROM codes"),
                rows("pantry", "SELECT name FROM food ORDER BY id"),
                rows("pantry", "SELECT release FROM moult_release"),
                rows("user", "SELECT text, (SELECT user_version FROM pragma_user_version) FROM note"),
                rows("pantry", "PRAGMA journal_mode"), rows("user", "PRAGMA journal_mode"),
            ]
        }

        private static func prepare(_ store: String, _ first: String, _ flow: Flow) throws {
            try Store(at: store).updateBlocking(to: first)
            for (name, sql) in [
                ("pantry", "INSERT INTO food VALUES(100, 'mine', 1)"), ("user", "INSERT INTO note VALUES('mine')"),
            ] {
                let app = try Connection(path: "\(store)/\(name).db", access: .readWrite)
                _ = try app.scalar("PRAGMA journal_mode = \(flow.mode)")
                try app.execute(sql)
                try app.close()
            }
        }

        // Three tests, so that each stays short.
        @Test(arguments: Flow.allCases)
        func `an update of writable databases survives a failure of any system call`(flow: Flow) throws {
            try expectSurvival(flow, keepsFailing: false, code: EIO)
        }

        @Test(arguments: Flow.allCases)
        func `an update of writable databases survives if the disk is full from any system call on`(flow: Flow) throws {
            try expectSurvival(flow, keepsFailing: true, code: ENOSPC)
        }

        private func expectSurvival(_ flow: Flow, keepsFailing: Bool, code: Int32) throws {
            let releases = try Scratch()
            let maker = try ReleaseMaker(in: releases.path)
            let (first, second) = try (Self.release(maker, 1), Self.release(maker, 2))
            let (old, new) = try states(first, second, flow)
            try #require(zip(old, new).filter { $0 == $1 }.count == 2)
            let step = FaultPoints.step * (keepsFailing ? 5 : 1)
            var (number, failed) = (1, 0)
            var fired = true
            while fired {
                let scratch = try Scratch()
                let store = scratch.path("store")
                try Self.prepare(store, first, flow)
                let orchestrator = try Orchestrator(root: store, steps: .builtIn)
                let faults = Faults(failAt: number, code: code, keepsFailing: keepsFailing)
                var failure: (any Error)?
                do {
                    try Faults.$current.withValue(faults) {
                        _ = try orchestrator.update(ReleaseFile(second))
                    }
                } catch { failure = error }
                fired = faults.failedCall != nil
                failed += fired ? 1 : 0
                let note = Comment(
                    "call \(number) (\(faults.failedCall ?? "none")), error \(failure.map { "\($0)" } ?? "none")")
                let isStuck = (failure as? MoultError)?.outcome == .stuck
                let then = try orchestrator.isUnfinished() ? nil : Self.state(store)
                if let then, !isStuck { #expect(then == (failure == nil ? new : old), note) }
                // The next command that writes recovers: the update is completed only if the decision was made.
                let endings = try orchestrator.recover().map(\.ending)
                let settled = try Self.state(store)
                if !isStuck { #expect(settled == (failure == nil ? new : old), note) }
                if failure != nil, !isStuck { #expect(!endings.contains(.finished), note) }
                #expect(settled == old || settled == new, note)
                #expect(try Files.list("\(store)/.moult/transactions") == [], note)
                // The release can be installed, with one line in the history.
                _ = try orchestrator.update(ReleaseFile(second))
                #expect(try Self.state(store) == new, note)
                let entries = try History.read(orchestrator.layout).entries
                #expect(
                    entries.filter { $0.to.hasPrefix("2.0.0") && [.done, .finished].contains($0.outcome) }.count == 1,
                    note)
                number += step
            }
            #expect(failed * step > FaultPoints.leastCalls)
        }

        /// Runs an update without failures, and returns the states before and after it.
        private func states(_ first: String, _ second: String, _ flow: Flow) throws -> (old: [String], new: [String]) {
            let scratch = try Scratch()
            let store = scratch.path("store")
            try Self.prepare(store, first, flow)
            let old = try Self.state(store)
            try Store(at: store).updateBlocking(to: second)
            return (old, try Self.state(store))
        }
    }
#endif
