import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Tests which consumers in the settings are called, in which order, and with which message.
@Suite struct ConsumerCallsTests {
    let shop: ConsumerShop

    init() throws {
        shop = try ConsumerShop()
        try shop.store.updateBlocking(to: shop.release(1))
    }

    @Test func `consumers release in reverse order`() throws {
        try shop.set(consumers: shop.consumer("a"), shop.consumer("b"), shop.consumer("c"))
        let ended = try shop.apply(shop.release(2))
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(
            try shop.said == [
                "c release pantry 1.0.0 ", "b release pantry 1.0.0 ", "a release pantry 1.0.0 ",
                "a reload food pantry 2.0.0 installed", "b reload food pantry 2.0.0 installed",
                "c reload food pantry 2.0.0 installed",
            ])
    }

    @Test func `only consumers of changed databases are called`() throws {
        try shop.set(
            consumers: shop.consumer("food", ["databases": ["food"]]), shop.consumer("user", ["databases": ["user"]]),
            shop.consumer("pantry", ["databases": ["pantry", "user"]]))
        let plan = try shop.store.plan(shop.release(2)).json
        #expect(
            plan["consumers"]?.line
                == """
                [{"consumer":"food","by":"command","release":false,"databases":[{"name":"food","kind":"reference","path":"food.db"}]},\
                {"consumer":"pantry","by":"command","release":true,"databases":[{"name":"pantry","kind":"shared","path":"pantry.db"}]}]
                """)
        #expect(try shop.apply(shop.release(2)).status == 0)
        #expect(
            try shop.said == [
                "pantry release pantry 1.0.0 ", "food reload food 2.0.0 installed",
                "pantry reload pantry 2.0.0 installed",
            ])
        // Installing the same release again changes nothing and calls no consumer.
        #expect(try shop.apply(shop.release(2)).status == 0)
        #expect(try shop.said.count == 3)
    }

    @Test func `the plan lists the consumers`() throws {
        try shop.set(
            consumers: shop.consumer("api"), ["name": "web", "systemd": "web.service", "databases": ["food", "fod"]])
        let ended = try BuiltMoult.run("plan", "--store", shop.root, shop.release(2))
        #expect(ended.output.contains("\nconsumer api (command): release and reload for food, pantry\n"))
        #expect(ended.output.contains("\nconsumer web (systemd): reload for food\n"))
        #expect(
            ended.errors.contains(
                "the consumer web is registered for \"fod\", which release 2.0.0 does not have"))
        #expect(try shop.said == [])
    }

    @Test func `no consumer is called for a database whose content is unchanged`() throws {
        try shop.set(consumers: shop.consumer("food", ["databases": ["food"]]))
        let maker = try ReleaseMaker(in: shop.scratch.path("more"))
        let food = ReleaseMaker.Source.reference("food", "CREATE TABLE food(release); INSERT INTO food VALUES(1);")
        let other = ReleaseMaker.Source.reference("other", "CREATE TABLE other(x);")
        #expect(try shop.apply(maker.make("3.0.0", sequence: 3, [food, other])).status == 0)
        #expect(try shop.said == [])
    }

    @Test func `the message to a consumer contains generations, paths and tables`() throws {
        let input = shop.scratch.path("input")
        try shop.set(consumers: shop.consumer("api", release: "cat > \(input).1", reload: "cat > \(input).2"))
        let before = try shop.store.lease().generation
        #expect(try shop.apply(shop.release(2)).status == 0)
        let now = try shop.store.lease().generation
        func message(_ number: Int) throws -> JSON {
            try JSON(parsing: Files.read("\(input).\(number)", limit: 1 << 16) ?? [], source: "message")
        }
        let release = try message(1)
        #expect(release["call"]?.string == "release")
        #expect(release["generation"]?.string == before)
        #expect(release["next"]?.string == now)
        #expect(
            release["databases"]?.line
                == "[{\"name\":\"pantry\",\"kind\":\"shared\",\"path\":\"\(shop.pantry)\",\"tables\":[\"pantry\"]}]")
        let reload = try message(2)
        #expect(reload["generation"]?.string == now)
        #expect(reload["previous"]?.string == before)
        #expect(reload["outcome"]?.string == "installed")
        #expect(reload["databases"]?.array?.map { $0["name"]?.string } == ["food", "pantry"])
        #expect(reload["databases"]?.array?.first?["tables"]?.line == "[\"food\"]")
    }

    @Test func `no signal is sent to a process that is not running`() throws {
        let gone = try Program(["true"])
        gone.wait()
        let file = shop.scratch.path("pid")
        try Files.writeNew(Array("\(gone.pid)\n".utf8), to: file)
        try shop.set(
            consumers: ["name": "gone", "signal": ["pidFile": .string(file), "release": "TERM"]],
            ["name": "none", "signal": ["pidFile": .string(file + ".none"), "release": "TERM"]])
        let ended = try shop.apply(shop.release(2))
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.errors == "")
    }

    /// If a process started after its pid file was written, the process ID has been reused.
    @Test func `no signal is sent to a reused process ID`() throws {
        let file = shop.scratch.path("pid")
        let innocent = try Program.python("print('ready'); input()")
        #expect(innocent.line() == "ready")
        try Files.writeNew(Array("\(innocent.pid)\n".utf8), to: file)
        try Shell.must(["touch", "-d", "1 hour ago", file])
        try shop.set(
            consumers: ["name": "gone", "signal": ["pidFile": .string(file), "release": "TERM", "reload": "TERM"]])
        #expect(try shop.apply(shop.release(2)).status == 0)
        innocent.write("\n")
        #expect(innocent.wait() == 0)
    }

    /// The machine may not run systemd, so only the calls to `systemctl` are tested.
    @Test(arguments: [
        (true, true, ["is-active --quiet web.service", "stop web.service", "start web.service"]),
        (true, false, ["is-active --quiet web.service", "try-reload-or-restart web.service"]),
        (false, true, ["try-reload-or-restart web.service"]),
    ])
    func `a systemd unit is reloaded, or stopped and started if its database is writable`(
        _ isWritable: Bool, _ runs: Bool, _ calls: [String]
    ) throws {
        let bin = try shop.scratch.directory("bin")
        let text = "#!/bin/sh\necho \"$*\" >> \(shop.scratch.path("said"))\n[ $1 != is-active ] || \(runs)\n"
        try Files.writeNew(Array(text.utf8), to: "\(bin)/systemctl", mode: 0o755)
        try shop.set(
            consumers: ["name": "web", "systemd": "web.service", "databases": [isWritable ? "pantry" : "food"]])
        let ended = try Shell.run(
            [BuiltMoult.path(), "apply", "--store", shop.root, shop.release(2)],
            environment: ["PATH": "\(bin):/usr/bin:/bin"])
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try shop.said == calls)
    }
}
