import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// `promtool` checks the metrics of real stores, and the alert rules and the dashboard that use the metrics.
@Suite(.tags(.thorough)) struct PrometheusTests {
    /// A state of a store: the commands that lead to the state, and the alerts that must fire.
    struct Case: Sendable, CustomTestStringConvertible {
        let state: String
        let script: String
        let alerts: Set<String>
        var testDescription: String { state }
    }

    static let cases = [
        Case(state: "healthy", script: "", alerts: []),
        Case(
            state: "empty", script: "rm -r store; moult init -q --product org.example.test",
            alerts: ["MoultNothingInstalled"]),
        Case(state: "on hold", script: "moult hold -q 2.0.0 --reason later", alerts: ["MoultOnHold"]),
        Case(state: "missing database", script: "rm store/user.db", alerts: ["MoultDatabaseFault"]),
        Case(
            state: "damaged database",
            script:
                "f=$(echo store/.moult/generations/*/food.db); chmod u+w $f; printf x | dd of=$f bs=1 seek=4096 conv=notrunc status=none",
            alerts: ["MoultDatabaseFault"]),
        Case(
            state: "copied", script: "cp -a store copy; rm -r store; mv copy store", alerts: ["MoultCopyNotVerified"]),
        Case(
            state: "newer release",
            script: "moult publish -q public rel/test-2.0.0.json --key k.key; moult check -q || [ $? = 2 ]",
            alerts: ["MoultReleaseNotInstalled"]),
        Case(
            state: "withdrawn release",
            script: "moult publish -q public --withdraw 1.0.0 --reason wrong --key k.key; moult check -q",
            alerts: ["MoultReleaseWithdrawn"]),
        Case(
            state: "expired feed",
            script: """
                cd store/.moult/feed; old=$(sha256sum feed.json | cut -d' ' -f1)
                sed -i 's/"expires": *"[^"]*"/"expires": "2020-01-02T03:04:05Z"/' feed.json
                sed -i "s/$old/$(sha256sum feed.json | cut -d' ' -f1)/" seen.json
                """, alerts: ["MoultFeedExpired"]),
        Case(
            state: "feed not renewed",
            script: "moult publish -q public --days 3 --key k.key; moult check -q", alerts: ["MoultFeedExpiresSoon"]),
        Case(
            state: "failed update",
            script: """
                moult publish -q other rel/test-2.0.0.json --key k.key
                # No record of this attempt can be written: the history is newer than the record of the last one.
                now=$(date +%s); until [ $(date +%s) -gt $now ]; do :; done
                ! strace -f -o trace -e trace=renameat2 -e inject=renameat2:error=EIO:when=3+ \
                  moult apply -q "$(find other -name test-2.0.0.json)"
                """, alerts: ["MoultUpdateFailed"]),
        Case(state: "server down", script: "mv public gone; ! moult apply -q", alerts: ["MoultUpdateFailed"]),
        Case(
            state: "server down for two days",
            script: """
                mv public gone; ! moult apply -q
                python3 - <<'E'
                import json
                path = "store/.moult/attempt.json"
                record = json.load(open(path))
                record["failingSince"] = "2020-01-02T03:04:05Z"
                json.dump(record, open(path, "w"))
                E
                """, alerts: ["MoultUpdateFailed", "MoultFailingForADay"]),
        Case(
            state: "timer stopped",
            script: #"sed -i 's/"time":"[^"]*"/"time":"2020-01-02T03:04:05Z"/' store/.moult/attempt.json"#,
            alerts: ["MoultFeedNotAsked"]),
        Case(
            state: "consumer did not reload",
            script: """
                sed -i '0,/{/s//{"consumers": [{"name": "app", "command": {"reload": ["\\/bin\\/false"]}}],/' store/moult.json
                moult publish -q public rel/test-2.0.0.json --key k.key; moult apply -q
                """, alerts: ["MoultConsumerNotReloaded"]),
        Case(
            state: "quarantine",
            script:
                "sqlite3 store/user.db \"INSERT INTO note VALUES('mine')\"; moult reset -q user --set-user-data-aside",
            alerts: ["MoultQuarantine"]),
        Case(
            state: "damaged record of holds",
            script: "moult hold -q 2.0.0 --reason later; echo '{' > store/.moult/holds.json",
            alerts: ["MoultOnHold", "MoultHoldsDamaged"]),
        Case(
            state: "interrupted update",
            script: """
                moult publish -q other rel/test-2.0.0.json --key k.key
                ! strace -f -o trace -e trace=renameat2,renameat -e inject=renameat2,renameat:signal=KILL:when=3 \
                  moult apply -q "$(find other -name test-2.0.0.json)"
                """, alerts: ["MoultUpdateInterrupted"]),
        Case(
            state: "clock behind the feed",
            script: """
                cd store/.moult/feed; old=$(sha256sum feed.json | cut -d' ' -f1)
                sed -i 's/"created": *"[^"]*"/"created": "2099-01-02T03:04:05Z"/' feed.json
                sed -i "s/$old/$(sha256sum feed.json | cut -d' ' -f1)/" seen.json
                """, alerts: ["MoultClockWrong"]),
        Case(
            state: "quarantine over its budget",
            script: """
                sqlite3 store/user.db "INSERT INTO note VALUES('mine')"; moult reset -q user --set-user-data-aside
                sed -i '0,/{/s//{"quarantine": {"size": 0},/' store/moult.json
                """, alerts: ["MoultQuarantine", "MoultQuarantineFull"]),
        Case(
            state: "lost key list",
            script: """
                moult publish -q public rel/test-2.0.0.json --key k.key --trust k.pub; moult apply -q
                rm -r store/.moult/keys
                """, alerts: ["MoultKeyListMissing"]),
        Case(state: "unreadable", script: "echo '{' > store/moult.json", alerts: ["MoultStoreUnreadable"]),
    ]

    private static let integration = "\(Project.root)/integrations/prometheus"
    private static let rules = "\(integration)/moult.rules.yml"

    private let world: VerbWorld
    init() throws { world = try VerbWorld() }

    /// Returns the metrics of a store that follows a feed and is in the state of the case.
    private func metrics(_ one: Case) throws -> String {
        try world.must(
            """
            moult keygen -q --no-password k
            moult publish -q public rel/test-1.0.0.json --key k.key
            moult init -q --product org.example.test --key k.pub --feed "$PWD/public/feed.json"
            moult apply -q
            """)
        try world.must(one.script)
        let run = try world.run("moult status --prometheus")
        #expect(run.status == (one.state == "unreadable" ? 1 : 0), "\(run.err)")
        return run.out
    }

    @Test(arguments: cases)
    func `the metrics of each state raise exactly the expected alerts`(_ one: Case) throws {
        let metrics = try metrics(one)
        let check = try Shell.run(["promtool", "check", "metrics"], input: metrics)
        #expect((check.status, check.output + check.errors) == (0, ""))
        let fired = try firing(metrics)
        #expect(fired == one.alerts, "\(metrics)")
    }

    @Test func `a quarantine that cannot be read does not hide the other metrics`() throws {
        _ = try metrics(Self.cases[0])
        try world.must("rm -rf store/.moult/quarantine; echo x > store/.moult/quarantine")
        let run = try world.run("moult status --prometheus")
        #expect(run.status == 1 && run.err.contains("/store/.moult/quarantine"), "\(run.err)")
        #expect(run.out.contains("moult_up{") && run.out.contains("moult_failed{"), "\(run.out)")
        #expect(!run.out.contains("moult_quarantine_sets{"))
        // Monitoring in other forms warns.
        let line = try world.run("moult status --nagios")
        #expect(line.status == 1 && line.out.contains("cannot list") && line.out.contains("Not a directory"), "\(line)")
        #expect(try world.run("moult status").out.contains("cannot list"))
    }

    /// A store that root refuses to read would otherwise look as if it had been removed.
    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `a store that root does not use is reported as unreadable`() throws {
        _ = try metrics(Self.cases[0])
        try world.must("chown -R 65534 .")
        // As root runs it.
        let run = try Shell.run([BuiltMoult.path(), "status", "--prometheus", "--store", world.store])
        #expect(run.status == 3 && run.output.contains("moult_up{store=\"\(world.store)\"} 0\n"), "\(run)")
    }

    /// States that a test store cannot have, from metrics in the form that the command prints.
    @Test(arguments: [
        ("moult_last_result{store=\"/s\",outcome=\"stuck\"} 1", "MoultUpdateStuck"),
        ("moult_laggards{store=\"/s\"} 2", "MoultReadersLag"),
        ("moult_writable{store=\"/s\"} 0", "MoultNotWritable"),
        (
            "moult_key_list_expires_timestamp_seconds{store=\"/s\"} \(Timestamp.now.seconds + 86_400)",
            "MoultKeyListExpiresSoon"
        ),
        ("moult_release_expires_timestamp_seconds{store=\"/s\"} \(Timestamp.now.seconds - 60)", "MoultReleaseExpired"),
        ("node_textfile_mtime_seconds{file=\"/t/moult-app.prom\"} \(Timestamp.now.seconds - 7200)", "MoultMetricsOld"),
    ])
    func `rare states also raise their alerts`(_ line: String, _ alert: String) throws {
        #expect(try firing(line + "\n") == [alert])
    }

    /// A single store raises only its own alert; three in a hundred stores indicate a problem with the release.
    @Test(arguments: [(2, false), (3, true)])
    func `failures in many stores raise one alert for the fleet`(_ failed: Int, _ isFleets: Bool) throws {
        let lines = (0..<100).map { "moult_failed{store=\"/s\($0)\"} \($0 < failed ? 1 : 0)\n" }.joined()
        #expect(try firing(lines).contains("MoultFleetFailing") == isFleets)
    }

    /// A store that a cache or a proxy keeps at an old feed looks healthy on its own.
    @Test func `a store with an older feed than the others of its product is found`() throws {
        let lines = (0..<3).map {
            """
            moult_info{store="/s\($0)",product="org.example.test",version="1.0.0",generation="g"} 1
            moult_feed_serial{store="/s\($0)"} \($0 == 1 ? 4 : 5)

            """
        }
        #expect(try firing(lines.joined()) == ["MoultFeedBehind"])
        #expect(try firing(lines[0] + lines[2]) == [])
    }

    @Test func `the rules are valid`() throws {
        let check = try Shell.run(["promtool", "check", "rules", Self.rules])
        #expect(check.status == 0, "\(check.output)\(check.errors)")
    }

    @Test func `the dashboard and the rules name all metrics that the command prints, and no others`() throws {
        let printed = try metrics(Self.cases[0]).split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }
            .map { String($0.split(separator: " ")[2]) }
        // Only stores with a key list, with a release that expires, or with failures have these metrics.
        let optional: Set = [
            "moult_key_list_expires_timestamp_seconds", "moult_release_expires_timestamp_seconds",
            "moult_failing_since_timestamp_seconds", "moult_attempt_error", "moult_finding", "moult_feed_info",
            "moult_rollout_position_ratio",
        ]
        var all: Set<String> = []
        for file in [Self.rules, "\(Self.integration)/dashboard.json"] {
            let text = String(decoding: try Files.read(file, limit: 1 << 20) ?? [], as: UTF8.self)
            let named = Set(text.matches(of: /\bmoult_[a-z_]+/).map { String($0.output) })
            #expect(named.count > 10)
            #expect(named.subtracting(printed).subtracting(optional) == [])
            all.formUnion(named)
        }
        // moult_hold and moult_last_… have the same facts in a better form for alerts.
        #expect(Set(printed).subtracting(all) == ["moult_holds", "moult_last_timestamp_seconds"])
    }

    /// Each expression of the dashboard becomes a recording rule, which promtool checks.
    @Test func `the dashboard's queries are valid`() throws {
        let bytes = try Files.read("\(Self.integration)/dashboard.json", limit: 1 << 20) ?? []
        let dashboard = try JSON(parsing: bytes, source: "dashboard.json")
        let queries = try #require(dashboard["panels"]?.array).flatMap { $0["targets"]?.array ?? [] }
            .compactMap { $0["expr"]?.string?.replacing("$product", with: ".*") }
        #expect(queries.count > 15)
        let rules = queries.enumerated().map {
            "  - record: 'query:\($0.offset)'\n    expr: '\($0.element.replacing("'", with: "''"))'\n"
        }
        let file = world.scratch.path("queries.yml")
        try Files.writeNew(Array("groups:\n- name: dashboard\n  rules:\n\(rules.joined())".utf8), to: file)
        let check = try Shell.run(["promtool", "check", "rules", file])
        #expect(check.status == 0, "\(check.output)\(check.errors)")
    }

    /// Returns the alerts that fire after a server has read these metrics for 30 days. The clock of promtool starts at
    /// zero, so times are shifted.
    private func firing(_ metrics: String) throws -> Set<String> {
        let days = 30
        let shift = Timestamp.now.seconds - days * 86_400
        let series = metrics.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
            let end = line.lastIndex(of: " ") ?? line.endIndex
            let (name, value) = (line[..<end], line[end...].dropFirst())
            let isTime = name.contains("_timestamp_seconds{") || name.contains("_mtime_seconds{")
            let number = isTime ? "\((Int(value) ?? 0) - shift)" : String(value)
            let quoted = name.replacing("{", with: "{instance=\"host:9100\",").replacing("'", with: "''")
            return "  - {series: '\(quoted)', values: '\(number)+0x\(days * 24)'}\n"
        }
        let names = String(decoding: try Files.read(Self.rules, limit: 1 << 20) ?? [], as: UTF8.self)
            .matches(of: /- alert: (\w+)/).map { String($0.output.1) }
        #expect(names.count > 15)
        // promtool compares values instead of printing them, so each alert needs its own test.
        func test(_ expected: Set<String>) throws -> Shell.Ended {
            let questions = names.map { name in
                """
                  - expr: 'count(ALERTS{alertname="\(name)",alertstate="firing"}) > bool 0 or vector(0)'
                    eval_time: \(days)d
                    exp_samples: [{labels: '{}', value: \(expected.contains(name) ? 1 : 0)}]

                """
            }
            let text = """
                rule_files: ['\(Self.rules)']
                evaluation_interval: 1h
                tests:
                - interval: 1h
                  input_series:
                \(series.joined())
                  promql_expr_test:
                \(questions.joined())
                """
            let directory = try Scratch()
            let file = directory.path("test.yml")
            try Files.writeNew(Array(text.utf8), to: file)
            return try Shell.run(["promtool", "test", "rules", file])
        }
        let ended = try test([])
        if ended.status == 0 { return [] }
        let answer = ended.output + ended.errors
        return Set(answer.matches(of: /alertname=\\?"(\w+)\\?"/).map { String($0.output.1) })
    }
}
