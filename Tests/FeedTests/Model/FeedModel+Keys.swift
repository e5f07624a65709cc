import MoultBasics
import MoultFiles
import MoultPublish
import MoultTransport
import MoultTrust
import StepKit
import Synchronization
import TestSupport

@testable import Moult

/// Changes of keys, and a thief who has them.
extension FeedModel {
    func replaceKeys(_ machine: Int, isNew: Bool) throws {
        let (newRelease, newTimestamp) = (try SecretKey.generate(), try SecretKey.generate())
        lists += 1
        try makeList(newRelease, newTimestamp)
        let evil = Version(9, 9, 9)
        let own = try ownFeed(machine)
        let before = try publicFeed().keyList
        // Releases that only the other machine has are published again by hand.
        if isNew { (promised, dropped) = ([], []) }
        try publish(machine, keys: isNew ? [newRelease, newTimestamp] : [newRelease, newTimestamp, timestamp]) {
            options in
            options.isNew = isNew && own != nil
            options.changes = [.keyList(self.list(self.lists))]
            if isNew, own?.release(evil)?.withdrawn == nil, own?.release(evil) != nil || own == nil {
                options.changes.append(.withdraw(evil, reason: "stolen key"))
            }
        }
        if try publicFeed().keyList == before {
            // The command was refused, and the keys stay.
            for name in try Files.list(scratch.path("keys")) where name.hasPrefix("keys-\(lists).json") {
                try Files.remove(scratch.path("keys/\(name)"))
            }
            lists -= 1
            if isNew { throw Violation(description: "the owner cannot replace the stolen keys: \(refusal)") }
            return
        }
        (release, timestamp) = (newRelease, newTimestamp)
    }

    /// The thief has the keys in force, but not the root key.
    func steal(_ jump: Int) throws {
        if try isStolen || isPublic("9.9.9") { return }
        try Files.removeTree(scratch.path("m2"))
        if try Files.facts(scratch.path("rel/9.9.9.json")) != nil { return }
        isStolen = true
        try Files.removeTree(scratch.path("thief"))
        try Files.makeDirectory(scratch.path("thief"))
        for name in try Files.list(scratch.path("away")) {
            try Files.copy(scratch.path("away/\(name)"), to: scratch.path("thief/\(name)"), mode: 0o644)
        }
        let manifest = try makeRelease(nil, Version(9, 9, 9))
        var options = PublishOptions()
        (options.keys, options.now) = ([release, timestamp], now)
        // A new store accepts no first serial above a million.
        options.serial = try min(publicFeed().serial + jump, 990_000)
        if try options.serial ?? 0 <= publicFeed().serial { options.serial = nil }
        _ = try FeedPublisher(scratch.path("thief"), options).publish([manifest])
        for name in try Files.list(scratch.path("thief")) where !name.hasPrefix(".") {
            let bytes = try Files.read(scratch.path("thief/\(name)"), limit: 1 << 24) ?? []
            try Files.replace(scratch.path("away/\(name)"), with: bytes, durable: false)
        }
        try checkPublic()
    }

    /// A store that followed the thief returns with the first feed under the new keys.
    func requireRecovery() throws {
        for store in stores where store.installed?.version == Version(9, 9, 9) {
            try store.poll(scratch.path("away"), now, isReplay: false)
            let offers = try !store.offered(by: publicFeed()).isEmpty
            if offers, store.installed?.version == Version(9, 9, 9) {
                throw Violation(description: "\(store.root) still has the release of the thief")
            }
        }
    }
}
