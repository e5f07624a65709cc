import TestSupport
import Testing

@testable import MoultFiles

/// The type of the file system of a path.
struct MountedFileSystemTests {
    @Test func `a file in /proc has the type proc`() throws {
        let system = try MountedFileSystem.of("/proc/self/status")
        #expect(system?.type == "proc")
        #expect(system?.isShared == false)
    }

    @Test(arguments: [
        ("/srv/data/store", "nfs4", true), ("/srv/database", "ext4", false), ("/mnt/my disk/x", "fuse.sshfs", true),
        ("/mnt/my", "ext4", false),
    ])
    func `the mount table shows the file system of a path`(_ path: String, _ type: String, _ isShared: Bool) {
        let table = """
            21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
            30 21 0:40 / /srv/data rw,relatime shared:3 - nfs4 server:/x rw,vers=4.2
            31 21 0:41 / /mnt/my\\040disk ro,nosuid - fuse.sshfs host: rw
            """
        let found = MountedFileSystem.find(path, in: table)
        #expect(found?.type == type)
        #expect(found?.isShared == isShared)
        #expect(found?.isReadOnly == (type == "fuse.sshfs"))
    }
}
