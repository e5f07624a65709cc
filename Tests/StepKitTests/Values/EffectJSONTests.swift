import MoultBasics
import StepKit
import Testing

@Suite struct EffectJSONTests {
    /// Every kind of change, with its JSON in a journal.
    static let changes: [(Change, String)] = [
        (.confirm("all is well"), #"{"do":"confirm","text":"all is well"}"#),
        (.retire(generation: "1.0.0+0badc0de"), #"{"do":"retire","generation":"1.0.0+0badc0de"}"#),
        (.unlink(path: "food.db"), #"{"do":"unlink","path":"food.db"}"#),
        (.seal(member: "food.db", size: 1 << 33), #"{"do":"seal","member":"food.db","size":8589934592}"#),
        (.keepTemplate(member: "p.db", size: 3), #"{"do":"keepTemplate","member":"p.db","size":3}"#),
        (
            .linkInPlace(target: "/usr/share/food.db", size: 0),
            #"{"do":"linkInPlace","target":"/usr/share/food.db","size":0}"#
        ),
        (.restore(generation: "1.0.0+0badc0de"), #"{"do":"restore","generation":"1.0.0+0badc0de"}"#),
        (
            .installGeneration(generation: "2.0.0+0badc0de"),
            #"{"do":"installGeneration","generation":"2.0.0+0badc0de"}"#
        ),
        (.switchCurrent(to: "b", from: "a"), #"{"do":"switchCurrent","to":"b","from":"a"}"#),
        (.switchCurrent(to: "b", from: nil), #"{"do":"switchCurrent","to":"b"}"#),
        (.link(path: "food.db", member: "f.db"), #"{"do":"link","path":"food.db","member":"f.db"}"#),
        (.create(path: "p.db", size: 7), #"{"do":"create","path":"p.db","size":7}"#),
        (
            .displace(path: "thumbs.db", why: "it is old", reason: .foreign),
            #"{"do":"displace","path":"thumbs.db","why":"it is old","reason":"foreign"}"#
        ),
        (
            .quarantine(path: "thumbs.db", why: "not a database", reason: .unfitCache),
            #"{"do":"quarantine","path":"thumbs.db","why":"not a database","reason":"unfit-cache"}"#
        ),
        (
            .replace(Replacement(path: "pantry.db", member: "p.db", size: 7, reason: .rolledBack)),
            #"{"do":"replace","path":"pantry.db","member":"p.db","size":7,"reason":"rolled-back","rows":[]}"#
        ),
        (
            .replace(
                Replacement(
                    path: "p", member: "p", size: 7, reason: .replaced,
                    rows: [RowFate(table: "item", carried: 3, kept: 1)])),
            #"{"do":"replace","path":"p","member":"p","size":7,"reason":"replaced","rows":[{"table":"item","carried":3,"rejected":0,"kept":1}]}"#
        ),
        (
            .migrate(path: "user.db", members: ["1.sql", "2.sql"], from: 0, to: -2),
            #"{"do":"migrate","path":"user.db","members":["1.sql","2.sql"],"from":0,"to":-2}"#
        ),
        (
            .restoreRows(path: "p.db", table: "item", set: "s", size: 7, generations: ["1.0.0+0a3b5802"]),
            #"{"do":"restoreRows","path":"p.db","table":"item","set":"s","size":7,"generations":["1.0.0+0a3b5802"]}"#
        ),
        (.keep(why: "is \"there\""), #"{"do":"keep","why":"is \"there\""}"#),
        (
            .attach(main: "user", names: ["food", "pantry"]),
            #"{"do":"attach","main":"user","names":["food","pantry"]}"#
        ),
        (.attach(main: nil, names: []), #"{"do":"attach","names":[]}"#),
        (.prove(["quick_check", "3 golden queries"]), #"{"do":"prove","methods":["quick_check","3 golden queries"]}"#),
        (
            .custom(name: "reindex", text: "2 indexes", with: ["a": [1, .number(2.5), .null]]),
            #"{"do":"custom","name":"reindex","text":"2 indexes","with":{"a":[1,2.5,null]}}"#
        ),
        (.custom(name: "n", text: "t", with: .null), #"{"do":"custom","name":"n","text":"t","with":null}"#),
    ]

    @Test(arguments: changes)
    func `an effect is read back unchanged`(_ change: Change, _ line: String) throws {
        let effect = Effect(step: "acme.reindex", phase: .copy, database: "food", change)
        #expect(effect.json["change"]?.line == line)
        let text = effect.json.line
        #expect(try Effect(json: JSON(parsing: text, source: "journal"), source: "journal") == effect)
    }

    @Test func `the test table has every kind of change`() {
        #expect(Set(Self.changes.map { Self.number($0.0) }) == Set(1...20))
    }

    /// Numbers the kinds of changes. The switch is exhaustive, so a new kind cannot be added without changing this
    /// test.
    private static func number(_ change: Change) -> Int {
        switch change {
        case .confirm: 1
        case .retire: 2
        case .unlink: 3
        case .seal: 5
        case .linkInPlace: 6
        case .restore: 7
        case .installGeneration: 8
        case .switchCurrent: 9
        case .link: 10
        case .create: 11
        case .keep: 12
        case .attach: 13
        case .prove: 14
        case .custom: 15
        case .quarantine: 16
        case .replace: 17
        case .migrate: 18
        case .keepTemplate: 4
        case .restoreRows: 19
        case .displace: 20
        }
    }

    @Test(arguments: Phase.allCases)
    func `every phase is read back from JSON`(_ phase: Phase) throws {
        let effect = Effect(step: "s", phase: phase, .keep(why: "w"))
        #expect(try Effect(json: effect.json, source: "journal") == effect)
        #expect(effect.json["database"] == nil)
    }

    @Test func `phases are sorted in the order of an update`() {
        #expect(Phase.allCases.sorted() == [.check, .delete, .copy, .attach, .verify])
    }

    @Test(arguments: [
        ("[]", "the document must be an object, but is a list"),
        (#"{"step":"s","change":{"do":"keep","why":"w"}}"#, "phase is missing"),
        (#"{"phase":"copy","change":{"do":"keep","why":"w"}}"#, "step is missing"),
        (#"{"step":"s","phase":"copy"}"#, "change is missing"),
        (
            #"{"step":"s","phase":"later","change":{"do":"keep","why":"w"}}"#,
            #"phase must be one of "check", "delete", "copy", "attach", "verify", but is "later""#
        ),
        (#"{"step":"s","phase":"copy","change":{"do":"fly"}}"#, #"change.do "fly" is not a known change"#),
        (#"{"step":"s","phase":"copy","change":{"do":"keep"}}"#, "change.why is missing"),
        (
            #"{"step":"s","phase":"copy","change":{"do":"seal","member":"m","size":-1}}"#,
            "change.size must not be negative, but is -1"
        ),
        (#"{"step":"s","phase":"copy","change":{"do":"replace"}}"#, "change.path is missing"),
        (
            #"{"step":"s","phase":"copy","change":{"do":"prove","methods":["a",1]}}"#,
            "change.methods[1] must be a string, but is a whole number"
        ),
    ])
    func `an invalid effect is refused`(_ text: String, _ why: String) throws {
        let json = try JSON(parsing: text, source: "journal")
        let error = #expect(throws: MoultError.self) { try Effect(json: json, source: "journal") }
        #expect(error.map { "\($0)" } == "journal: \(why). Another version of moult may have written it.")
    }
}
