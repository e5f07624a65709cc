import MoultBasics
import TestSupport
import Testing

/// Repairs of read-only databases that other programs have damaged or replaced.
@Suite struct RepairTests {
    @Test func `repairing a damaged database notifies its consumers`() throws {
        let store = try ReleasesStore(
            1,
            settings: """
                "consumers": [{"name": "app", "command": {"release": ["true"],
                "reload": ["sh", "-c", "echo $MOULT_CHANGED >> $MOULT_STORE/../log"]}}]
                """)
        try store.must(
            "f=$(readlink -f store/food.db); chmod u+w $f; printf X | dd of=$f bs=1 seek=5000 conv=notrunc status=none")
        try store.must("rm -f log; moult apply -q \(store.manifest("1.0.0"))")
        #expect(try store.must("cat log") == "food\n")
    }

    @Test(arguments: ["-wal", "-shm"])
    func `an empty sidecar of a database in rollback mode does not block an update`(_ suffix: String) throws {
        let store = try ReleasesStore(1)
        try store.must("rm store/food.db; sqlite3 store/food.db 'CREATE TABLE mine(a)'; : > store/food.db\(suffix)")
        try store.must("moult apply -q \(store.manifest("1.0.0")); moult verify -q")
    }
}
