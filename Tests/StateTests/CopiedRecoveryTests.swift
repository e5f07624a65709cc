import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// An interrupted update is recovered in a copy of the store as in the original.
@Suite(.tags(.thorough, .slow)) struct CopiedRecoveryTests {
    static let points: [(call: String, number: Int)] = [
        ("fsync", 4), ("fsync", 7), ("fsync", 9), ("fsync", 11), ("fsync", 14), ("renameat2", 1), ("renameat2", 2),
        ("renameat2", 4), ("renameat2", 5), ("renameat2", 6), ("linkat", 1), ("unlinkat", 3), ("unlinkat", 6),
        ("unlinkat", 9), ("symlinkat", 1),
        ("unlinkat", 12), ("unlinkat", 15), ("mkdirat", 5), ("write", 8),
    ]

    private func interrupt(
        _ operation: String, _ point: (String, Int), at path: String, _ releases: CopiedStore.Releases
    ) throws -> CopiedStore? {
        let state: CopiedStore.State =
            switch operation {
            case "restore": .quarantine
            default: .twoGenerations
            }
        let store = try CopiedStore.make(state, at: path, releases)
        let arguments: [String]
        switch operation {
        case "update": arguments = ["apply", releases.manifest(3)]
        case "reset": arguments = ["reset", "diary", "--set-user-data-aside"]
        case "restore": arguments = ["quarantine", "--restore", "diary"]
        default:
            let food = "\(path)/.moult/current/food.db"
            try Shell.must(["chmod", "u+w", food])
            try Shell.must(["sh", "-ec", "printf x | dd of='\(food)' bs=1 seek=5000 conv=notrunc 2>/dev/null"])
            arguments = ["apply", releases.manifest(2)]
        }
        return try store.kill(at: point, arguments) ? store : nil
    }

    private static let operations = ["update", "reset", "repair", "restore"]

    @Test(arguments: operations) func `recovery in a copy ends as in the original`(operation: String) throws {
        try compare(operation, undo: false)
    }

    @Test(arguments: operations) func `an undo in a copy ends as in the original`(operation: String) throws {
        try compare(operation, undo: true)
    }

    private func compare(_ operation: String, undo: Bool) throws {
        let (releases, scratch) = (try CopiedStore.Releases(), try Scratch())
        let recover = ["recover"] + (undo ? ["--undo"] : [])
        var interrupted = 0
        for (index, point) in Self.points.enumerated() {
            let path = scratch.path("\(index)")
            guard let original = try interrupt(operation, point, at: path, releases) else { continue }
            interrupted += 1
            var outcomes: [(way: CopyWay, outcome: CopyMatrixTests.Outcome, errors: String)] = []
            let before = try original.files()
            for way in [CopyWay.archive, .bytes, .hardLinks] {
                let copy = CopiedStore(path: "\(path)-\(way)")
                try way.copy(path, to: copy.path)
                let (outcome, ended) = try CopyMatrixTests.outcome(copy, recover)
                outcomes.append((way, outcome, ended.errors))
            }
            #expect(try original.files() == before, "\(operation), \(point): the copies changed the original")
            let expected = try CopyMatrixTests.outcome(original, recover).0
            for (way, outcome, errors) in outcomes {
                #expect(outcome == expected, "\(operation), \(point), \(way.rawValue): \(errors)")
            }
        }
        #expect(interrupted >= 8, "only \(interrupted) points were reached")
    }
}
