import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A store in a btrfs subvolume, where `stat` returns a device number that differs from the kernel's table of locks.
@Suite(.tags(.thorough), .enabled(if: Btrfs.isAvailable, "needs root, mkfs.btrfs and a kernel with btrfs"))
struct BtrfsTests {
    let disk: Btrfs
    let store: ReleasesStore

    init() throws {
        disk = try Btrfs()
        store = try ReleasesStore(2, installed: 1)
        try Shell.must(["cp", "-a", store.path, "\(disk.subvolume)/store"])
        // The store in the subvolume replaces the original store.
        try Files.removeTree(store.path)
        try Files.symlink(to: "\(disk.subvolume)/store", at: store.path)
    }

    /// Starts a process with a shared lock on a file or directory.
    private func locking(_ path: String) throws -> Background {
        let ready = store.scratch.path("ready")
        let reader = try Background([
            "python3", "-c",
            """
            import fcntl, os, signal, sys
            fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_SH)
            open(sys.argv[2], "w").close()
            signal.pause()
            """, path, ready,
        ])
        try reader.wait { try Files.facts(ready) != nil }
        return reader
    }

    @Test func `leases in a subvolume are listed, and an update waits until they end`() throws {
        let reader = try locking("\(disk.subvolume)/store/.moult/current")
        let who = try store.json("moult status --processes --json")["holders"]?.array ?? []
        #expect(who.contains { process in process["uses"]?.array?.contains { $0["how"]?.string == "leased" } == true })
        #expect(try store.must("moult status").contains("read by pid \(reader.pid)"))
        let late = try store.run("moult apply --wait-for-readers 1 \(store.manifest("2.0.0"))")
        #expect(late.status == 0)
        #expect((late.output + late.errors).contains("still reads generation 1.0.0+"), "\(late)")
        reader.stop()
        #expect(try store.json("moult status --processes --json")["holders"]?.array?.isEmpty == true)
    }

    /// Different subvolumes use the same inode numbers.
    @Test func `a lock on the same inode number in another subvolume is not a lease`() throws {
        let generation = try Files.resolved("\(disk.subvolume)/store/.moult/current")
        let inode = try #require(try Files.facts(generation)?.inode)
        let other = "\(disk.mount)/other"
        try Shell.must(["btrfs", "subvolume", "create", other])
        var twin: String?
        for number in 0..<2000 where twin == nil {
            try Files.writeNew([], to: "\(other)/\(number)")
            if try Files.facts("\(other)/\(number)")?.inode == inode { twin = "\(other)/\(number)" }
        }
        let holder = try locking(try #require(twin))
        #expect(try store.json("moult status --processes --json")["holders"]?.array?.isEmpty == true)
        holder.stop()
    }
}

/// A btrfs file system in a file, which is mounted until the end of the test.
final class Btrfs {
    static let isAvailable: Bool = {
        guard geteuid() == 0, access("/usr/bin/mkfs.btrfs", X_OK) == 0 || access("/sbin/mkfs.btrfs", X_OK) == 0 else {
            return false
        }
        let systems = (try? Files.read("/proc/filesystems", limit: 1 << 16)).flatMap { $0 } ?? []
        guard String(decoding: systems, as: UTF8.self).contains("\tbtrfs") else { return false }
        // A container may not allow mounts.
        return (try? Btrfs()) != nil
    }()

    let scratch: Scratch
    let mount: String
    var subvolume: String { "\(mount)/sub" }

    init() throws {
        scratch = try Scratch()
        mount = try scratch.directory("mount")
        try Shell.must(["truncate", "-s", "128M", scratch.path("disk")])
        try Shell.must(["sh", "-ec", "PATH=$PATH:/usr/sbin:/sbin; mkfs.btrfs -q '\(scratch.path("disk"))'"])
        try Shell.must(["mount", "-o", "loop", scratch.path("disk"), mount])
        try Shell.must(["btrfs", "subvolume", "create", subvolume])
    }

    deinit { _ = try? Shell.run(["umount", "-l", mount]) }
}
