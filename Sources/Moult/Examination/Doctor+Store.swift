internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

extension Doctor {
    func unfinished() throws -> [Finding] {
        let workers = try LockHolders.of(layout.lock)
        return try Transaction.unfinished(layout).map { transaction in
            let isRunning = !workers.isEmpty
            return Finding(
                kind: "unfinished", path: transaction.directory,
                what: isRunning
                    ? "an update is running: \(workers.map(\.description).joined(separator: ", "))"
                    : "an update was interrupted",
                why: isRunning
                    ? "the findings may soon be out of date" : "it must be finished or undone",
                fix: isRunning
                    ? command("moult", "status", "--store", layout.root)
                    : command("moult", "recover", "--store", layout.root),
                isAdvice: isRunning)
        }
    }

    func pointer() throws -> [Finding] {
        if try Files.facts(layout.hidden) == nil {
            return [
                Finding(
                    kind: "pointer", path: layout.hidden, what: "it is missing",
                    why: "no release is installed, because this directory has the read-only databases and all records",
                    fix: installing())
            ]
        }
        do {
            _ = try Generation.currentName(layout)
            return []
        } catch let error as MoultError where error.code == .store {
            return [
                Finding(
                    kind: "pointer", path: layout.current, what: error.what, why: "no read-only database can be opened",
                    fix: command("moult", "recover", "--store", layout.root))
            ]
        }
    }

    /// Returns the command that installs the current release again.
    private func installing() -> String {
        command("moult", "apply", "--store", layout.root) + (settings.feed == nil ? " RELEASE" : "")
    }

    /// Finds dangling symlinks in the store: a program that opens one carelessly creates an empty database at its target. Skips
    /// symlinks at the paths of the release's databases: `faults` reports such a database, and `pointer` or `unreadable`
    /// reports a generation that cannot be read.
    func links() throws -> [Finding] {
        let current = try currentGeneration()
        let own = try current?.manifest.databases.map(store.place)
        return try Files.list(layout.root).compactMap { name in
            let path = layout.file(name)
            guard let target = try Files.target(ofLink: path), !(own?.contains(path) ?? StoreLayout.isSealed(target)),
                try Files.factsThroughLinks(path) == nil
            else {
                return nil
            }
            return Finding(
                kind: "dangling", path: path, what: "the link points to a missing file: \(target)",
                why: "SQLite creates an empty database there when a program opens the link", fix: command("rm", path))
        }
    }

    func settingsFile() throws -> [Finding] {
        try [layout.settings, layout.root, layout.hidden].compactMap { path in
            guard let facts = try Files.factsThroughLinks(path), facts.mode & 0o002 != 0 else { return nil }
            return Finding(
                kind: "writable", path: path, what: "every user can write to it",
                why: "the settings name programs that moult runs with the caller's rights",
                fix: command("chmod", "o-w", path))
        }
    }

    /// Reports settings that name another product than the installed release.
    func product() throws -> [Finding] {
        guard let installed = try currentGeneration()?.manifest.product, installed != settings.product else {
            return []
        }
        return [
            Finding(
                kind: "product", path: layout.settings,
                what: "the product is \(settings.product), but the installed release is one of \(installed)",
                why: "moult accepts only releases and feeds of the product in the settings",
                fix: "set \"product\" to \"\(installed)\" in \(layout.settings)")
        ]
    }

    /// Finds secrets in the feed's URLs that every user can read, or that are sent over plain HTTP.
    func secrets() throws -> [Finding] {
        let addresses = (settings.feed?.addresses ?? []).filter(\.hasSecrets)
        var findings: [Finding] = []
        if !addresses.isEmpty, let facts = try Files.factsThroughLinks(layout.settings), facts.mode & 0o004 != 0 {
            findings.append(
                Finding(
                    kind: "secrets", path: layout.settings,
                    what: "every user can read the settings, and a feed URL in them contains a secret",
                    why: "the query of a URL can contain a token or a signature",
                    fix: command("chmod", "o-r", layout.settings)))
        }
        for address in addresses where address.withSecrets.lowercased().hasPrefix("http:") {
            findings.append(
                Finding(
                    kind: "plainSecret", path: layout.settings,
                    what: "the secret in \(address) is sent over plain HTTP",
                    why: "an attacker between this machine and the server can read it", fix: "change the URL to https",
                    isAdvice: true))
        }
        return findings
    }

    /// Finds a history that cannot be read completely.
    func history() throws -> [Finding] {
        guard let fault = try History.fault(layout) else { return [] }
        return [
            Finding(
                kind: "history", path: layout.history, what: fault,
                why: "some changes to the store are missing from the history",
                fix: command("moult", "recover", "--store", layout.root))
        ]
    }

    /// Finds a record of holds that is damaged or lost.
    func holds() throws -> [Finding] {
        guard let fault = try store.holds.fault else { return [] }
        return [
            Finding(
                kind: "holds", path: layout.holds, what: fault, why: "no release can be installed",
                fix: command("moult", "recover", "--store", layout.root))
        ]
    }

    /// Finds files that have replaced directories of moult, and other things that have replaced its files.
    func kinds() throws -> [Finding] {
        func finding(_ path: String, _ what: String) throws -> Finding {
            Finding(
                kind: "wrongKind", path: path, what: what, why: "no command can change the store",
                fix: try Files.facts(path)?.kind == .link ? command("rm", path) : moveAway(path))
        }
        let directories = try (layout.directories + [layout.feed, layout.keys]).filter {
            try Files.factsThroughLinks($0).map { $0.kind != .directory } ?? false
        }
        // The history and the holds have findings of their own.
        let files = try [layout.links, layout.checks].filter { try Files.facts($0).map { $0.kind != .file } ?? false }
        return try directories.map { try finding($0, "it is not a directory") }
            + files.map { try finding($0, "it is not a regular file") }
    }

    /// Finds unknown files in moult's own directory.
    func unknownFiles() throws -> [Finding] {
        var strange = try Files.list(layout.hidden).map { "\(layout.hidden)/\($0)" }
            .filter { !layout.own.contains($0) }
        let names = try Generation.names(layout)
        strange += try Files.list(layout.generations).filter { !names.contains($0) && !CacheTag.isTag($0) }
            .map(layout.generation)
        for name in names {
            let directory = layout.generation(name)
            // `unreadable` reports a generation that cannot be read.
            guard let generation = try? store.generation(name) else { continue }
            let members = generation.manifest.databases.flatMap { [$0.member] + Sidecars.beside($0.member) }
            let known = members.map { String($0.prefix { $0 != "/" }) } + [Generation.manifestName, Seal.fileName]
            strange += try Files.list(directory).filter { !known.contains($0) && !CacheTag.isTag($0) }.map {
                "\(directory)/\($0)"
            }
        }
        return try strange.map {
            Finding(
                kind: "unknown", path: $0, what: "unknown file",
                why: "this version of moult does not use a file of this name; another program may have created it",
                fix: try moveAway($0))
        }
    }

    /// Finds generations whose manifest is missing or damaged, and kept generations with a damaged file.
    func unreadable() throws -> [Finding] {
        // If the link `current` cannot be read, every generation counts as kept; `pointer` reports that fault.
        let current = try? store.installedName
        var names = try Generation.names(layout)
        if let current, !names.contains(current) { names.append(current) }
        return try names.compactMap { name in
            do {
                let generation = try store.generation(name)
                return name == current ? nil : try unusable(generation)
            } catch let error as MoultError {
                if Files.isDenied(error) { throw error }
                let isCurrent = name == current
                return Finding(
                    kind: "generation", path: layout.generation(name), what: error.why ?? error.what,
                    why: isCurrent ? "this generation is in service" : "the store cannot roll back to this generation",
                    fix: isCurrent ? installing() : command("moult", "clean", "--store", layout.root))
            }
        }
    }

    /// Returns a finding if the store cannot roll back to a kept generation, because one of its files is damaged.
    private func unusable(_ generation: Generation) throws -> Finding? {
        let assessment = try Assessment(of: generation, in: store)
        for database in generation.manifest.databases {
            guard case .damaged(let why) = try assessment.sealedFile(of: database).standing else { continue }
            return Finding(
                kind: "generation", path: generation.path(database.member), what: "it \(why)",
                why: "the store cannot roll back to this generation",
                fix: "to use this generation, install its release again: "
                    + command("moult", "apply", "--allow-downgrade", "--store", layout.root, "RELEASE"), isAdvice: true)
        }
        return nil
    }

    /// Returns the store's findings about the databases in service.
    func faults(_ generation: Generation) throws -> [Finding] {
        let assessment = try Assessment(of: generation, in: store)
        return try generation.manifest.databases.compactMap { database in
            let (path, fault, remedy): (String, String?, [String]?)
            var why = "the app cannot use \(database.name) in this state"
            if database.kind.isSealed {
                remedy = ["moult", "apply"]
                let file = try assessment.sealedFile(of: database)
                let own = generation.path(database.member)
                // The store's own path of an in-place database is a link to the app's file.
                let target = try Files.target(ofLink: own) ?? own
                if case .damaged(let why) = file.standing {
                    (path, fault) = (target, "it \(why)")
                } else if file.standing == .unconfirmed, try !file.isVerified(own) {
                    // A program that sets the times of the file back leaves only its content as evidence.
                    (path, fault) = (target, "it was changed after it was sealed")
                } else {
                    path = try store.place(of: database)
                    fault = file.linkFault.map { _ in "it is not a symlink through .moult/current" }
                }
            } else {
                path = try store.place(of: database)
                let finding = try assessment.finding(of: database, .glance)
                (fault, remedy) = (finding.fault, finding.remedy?.command(for: database))
                if let fault, finding.isMissing, let remedy, database.kind.holdsAppData {
                    return Finding(
                        kind: "database", path: path, what: fault,
                        why: "the app cannot use \(database.name) in this state",
                        fix: "mount the disk, or restore the file; to start without the old data: "
                            + shellLine(remedy + ["--store", layout.root]))
                }
                if finding.awaitsMigration { why = "the app expects migrated content" }
                if case .permit(let command) = finding.remedy {
                    return Finding(
                        kind: "denied", path: path,
                        what: command?.first == "mv" ? "it cannot be read" : "this user has no read permission",
                        why: finding.notChecked[0],
                        fix: command.map(shellLine) ?? Permission.read(path).advice?.description
                            ?? shellLine(["ls", "-l", path]))
                }
            }
            guard let fault else { return nil }
            let words = Assessment.Remedy.complete(
                remedy ?? ["moult", "verify", database.name], store: ["--store", layout.root])
            return Finding(
                kind: "database", path: path, what: fault, why: why,
                fix: shellLine(words)
                    + (remedy == ["moult", "apply"] && settings.feed == nil ? " RELEASE" : ""))
        }
    }

    func unused() throws -> [Finding] {
        // If the link `current` cannot be read, the generations in use are unknown. `pointer` reports that, and `unreadable`
        // reports damaged generations.
        guard try pointer().isEmpty else { return [] }
        let broken = try unreadable().map(\.path)
        return try Collector(layout: layout, settings: settings).collect(dry: true).removed.compactMap { name in
            if broken.contains(layout.generation(name)) { return nil }
            return Finding(
                kind: "unused", path: layout.generation(name), what: "no process uses this generation",
                why: "the generation only takes up disk space", fix: command("moult", "clean", "--store", layout.root),
                isAdvice: true)
        }
    }

    /// Finds a missing `/proc`: kernel leases and locks work without it, but processes and their open files cannot be listed.
    func processes() throws -> [Finding] {
        if try Files.facts("\(SystemFeatures.proc)/self") != nil { return [] }
        return [
            Finding(
                kind: "proc", path: SystemFeatures.proc, what: "/proc is not mounted",
                why: "moult cannot see the open files of other processes or the type of a file system",
                fix: "mount -t proc proc /proc", isAdvice: true)
        ]
    }

    func fileSystems() throws -> [Finding] {
        var paths = [layout.root]
        if let current = try currentGeneration() {
            paths += try current.manifest.databases.map {
                try $0.kind.isSealed ? current.path($0.member) : store.place(of: $0)
            }
        }
        var places: [String] = []
        return try paths.compactMap { path in
            guard let system = try MountedFileSystem.of(path), system.isShared, !places.contains(system.mountPoint)
            else {
                return nil
            }
            places.append(system.mountPoint)
            return Finding(
                kind: "network", path: path, what: "\(system.mountPoint) is a \(system.type) file system",
                why: "file locks and shared memory may not work between machines, which can corrupt databases",
                fix: "copy the data to a local file system: " + command("cp", "-a", path, "LOCAL"))
        }
    }
}
