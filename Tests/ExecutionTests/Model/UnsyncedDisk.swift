/// A disk with unsynced changes: after a power failure, each change may be on the disk completely, partly or not at all.
///
/// The rules, where POSIX leaves open what may happen:
///
/// - Content written to a file is certain after the file was synced; its name only after the directory was. A name that
///   was created, removed or changed is certain after its directory, old or new, was synced. A rename is synced with the
///   directory of its new name, an exchange with either.
/// - Otherwise, every change is on the disk or not, independently of the others, with two exceptions: changes of one name keep
///   their order, and so do changes of one page of a file.
/// - A rename and an exchange are atomic. A symbolic link always has its target.
/// - Content is written in pages of 4 KiB. A page may be on the disk or not, or only its first half, or zeros instead of its
///   content if the file already has its new size.
/// - Owners, modes and times are ignored.
struct UnsyncedDisk {
    static let page = 4096

    struct Name: Hashable {
        let directory: Disk.ID
        let name: String
    }

    enum Change {
        /// The target of each name from now on, which is certain after one of the directories is synced.
        case names([Name: Disk.ID?], syncedBy: Set<Disk.ID>)
        /// Bytes within one page.
        case bytes(Disk.ID, at: Int, [UInt8])
        case size(Disk.ID, to: Int)
    }

    /// The result of a change when the power fails.
    enum Fate: Hashable { case lost, kept, torn, hollow }

    /// The content that programs see.
    private(set) var live: Disk
    /// The content that is certain after a power failure, unless a pending change covers it.
    private(set) var certain: Disk
    private(set) var pending: [Change] = []
    private var nextID: Disk.ID

    init(_ disk: Disk) {
        (live, certain) = (disk, disk)
        nextID = (disk.nodes.keys.max() ?? Disk.root) + 1
    }

    mutating func perform(_ operation: FileOperation) throws {
        switch operation {
        case .makeFile(let path): try make(path, .file([]))
        case .makeDirectory(let path): try make(path, .directory([:]))
        case .makeLink(let path, let target): try make(path, .link(target))
        case .write(let path, let offset, let bytes): try write(known(path), offset, bytes)
        case .resize(let path, let size): change(.size(try known(path), to: size))
        case .rename(let old, let new):
            let (id, from, to) = (try known(old), try name(old), try name(new))
            change(.names([from: nil, to: id], syncedBy: [to.directory]))
        case .exchange(let one, let other):
            let names = (try name(one), try name(other))
            change(
                .names(
                    [names.0: try known(other), names.1: try known(one)],
                    syncedBy: [names.0.directory, names.1.directory]))
        case .name(let old, let new): try give(name(new), known(old))
        case .remove(let path): try give(name(path), nil)
        case .sync(let path): sync(try known(path))
        }
    }

    private func known(_ path: String) throws -> Disk.ID {
        guard let id = try live.id(path) else { throw Disk.wrong("\(path) does not exist") }
        return id
    }

    private func name(_ path: String) throws -> Name {
        let place = try live.place(path)
        return Name(directory: place.directory, name: place.name)
    }

    private mutating func make(_ path: String, _ node: Disk.Node) throws {
        (live.nodes[nextID], certain.nodes[nextID]) = (node, node)
        try give(name(path), nextID)
        nextID += 1
    }

    private mutating func give(_ name: Name, _ id: Disk.ID?) { change(.names([name: id], syncedBy: [name.directory])) }

    private mutating func write(_ file: Disk.ID, _ offset: Int, _ bytes: [UInt8]) {
        var done = 0
        while done < bytes.count {
            let count = min(Self.page - (offset + done) % Self.page, bytes.count - done)
            change(.bytes(file, at: offset + done, Array(bytes[done..<done + count])))
            done += count
        }
    }

    private mutating func change(_ change: Change) {
        live.apply(change, .kept)
        pending.append(change)
    }

    private mutating func sync(_ id: Disk.ID) {
        var fates = pending.map { $0.isSynced(by: [id]) ? Fate.kept : .lost }
        keepOrder(&fates)
        certain = disk(after: fates)
        pending = zip(pending, fates).filter { $1 == .lost }.map(\.0)
    }

    /// Returns the disk after a power failure, given the fate of each pending change.
    func disk(after fates: [Fate]) -> Disk {
        var fates = fates
        keepOrder(&fates)
        var disk = certain
        for (change, fate) in zip(pending, fates) { disk.apply(change, fate) }
        return disk
    }

    /// Adjusts the results so that, if a change is on the disk, earlier changes of the same name or page are as well.
    private func keepOrder(_ fates: inout [Fate]) {
        var needed: Set<Place> = []
        for index in pending.indices.reversed() {
            let places = pending[index].places
            if !needed.isDisjoint(with: places) { fates[index] = .kept }
            if fates[index] != .lost { needed.formUnion(places) }
        }
    }

    enum Place: Hashable {
        case name(Name)
        case page(Disk.ID, Int)
    }
}

extension UnsyncedDisk.Change {
    /// The names or pages whose changes keep their order.
    var places: [UnsyncedDisk.Place] {
        switch self {
        case .names(let names, _): names.keys.map { .name($0) }
        case .bytes(let file, let offset, _): [.page(file, offset / UnsyncedDisk.page)]
        case .size: []
        }
    }

    /// Returns whether the change is certain as soon as one of these files or directories is synced.
    func isSynced(by ids: Set<Disk.ID>) -> Bool {
        switch self {
        case .names(_, let directories): !directories.isDisjoint(with: ids)
        case .bytes(let file, _, _), .size(let file, _): ids.contains(file)
        }
    }

    var isBytes: Bool { if case .bytes = self { true } else { false } }
}

extension Disk {
    mutating func apply(_ change: UnsyncedDisk.Change, _ fate: UnsyncedDisk.Fate) {
        if fate == .lost { return }
        switch change {
        case .names(let names, _): for (name, id) in names { set(name, id) }
        case .size(let file, let size): resize(file, size)
        case .bytes(let file, let offset, let bytes):
            let count = fate == .kept ? bytes.count : fate == .torn ? bytes.count / 2 : 0
            var content = self.content(file)
            nodes[file] = .file([])
            if content.count < offset + bytes.count, fate != .torn || content.count < offset + count {
                let end = fate == .torn ? offset + count : offset + bytes.count
                content += [UInt8](repeating: 0, count: end - content.count)
            }
            content.replaceSubrange(offset..<offset + count, with: bytes[..<count])
            nodes[file] = .file(content)
        }
    }

    private mutating func set(_ name: UnsyncedDisk.Name, _ id: ID?) {
        var names = self.names(name.directory)
        names[name.name] = id
        nodes[name.directory] = .directory(names)
    }

    private mutating func resize(_ file: ID, _ size: Int) {
        var content = self.content(file)
        if size < content.count {
            content.removeLast(content.count - size)
        } else {
            content += [UInt8](repeating: 0, count: size - content.count)
        }
        nodes[file] = .file(content)
    }
}
