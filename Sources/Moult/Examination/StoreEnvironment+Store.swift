internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

extension StoreEnvironment {
    func pointer() throws -> Finding? {
        if try Files.facts(layout.hidden) == nil {
            return Finding(
                .pointer, path: layout.hidden, "it is missing",
                why: "no release is installed, because this directory has the read-only databases and all records",
                advice: .installing(settings))
        }
        do {
            _ = try Generation.currentName(layout)
            return nil
        } catch let error as MoultError where error.code == .store {
            return Finding(
                .pointer, path: layout.current, error.what, why: "no read-only database can be opened",
                advice: Advice(moult: "recover"))
        }
    }

    /// Finds dangling symlinks: a program that opens one carelessly creates an empty database at its target. Those at the paths of
    /// the release's databases are reported by `databases`, and an unreadable generation by `pointer` or `unreadable`.
    func links() throws -> [Finding] {
        let current = try currentGeneration()
        let own = try current?.manifest.databases.map(store.place)
        return try Files.list(layout.root).compactMap { name in
            let path = layout.file(name)
            guard let target = try Files.target(ofLink: path), !(own?.contains(path) ?? StoreLayout.isSealed(target)),
                try Files.factsThroughLinks(path) == nil
            else { return nil }
            return Finding(
                .dangling, .warning, path: path, "the link points to a missing file: \(target)",
                why: "SQLite creates an empty database there when a program opens the link",
                advice: "\(run: ["rm", path])")
        }
    }

    func settingsFile() throws -> [Finding] {
        try [layout.settings, layout.root, layout.hidden].compactMap { path in
            guard let facts = try Files.factsThroughLinks(path), facts.mode & 0o002 != 0 else { return nil }
            return Finding(
                .writable, .warning, path: path, "every user can write to it",
                why: "the settings name programs that moult runs with the caller's rights",
                advice: "\(run: ["chmod", "o-w", path])")
        }
    }

    func product() throws -> Finding? {
        guard let installed = try currentGeneration()?.manifest.product, installed != settings.product else {
            return nil
        }
        return Finding(
            .product, path: layout.settings,
            "the product is \(settings.product), but the installed release is one of \(installed)",
            why: "moult accepts only releases and feeds of the product in the settings",
            advice: "Set \"product\" to \"\(installed)\" in \(layout.settings).")
    }

    /// Finds secrets in the feed's URLs that every user can read, or that are sent over plain HTTP.
    func secrets() throws -> [Finding] {
        let addresses = ((settings.feed?.addresses ?? []) + [settings.report].compactMap(\.self)).filter(\.hasSecrets)
        var findings: [Finding] = []
        if !addresses.isEmpty, let facts = try Files.factsThroughLinks(layout.settings), facts.mode & 0o004 != 0 {
            findings.add(
                .secrets, .warning, path: layout.settings,
                "every user can read the settings, and a URL in them contains a secret",
                why: "the query of a URL can contain a token or a signature",
                advice: "\(run: ["chmod", "o-r", layout.settings])")
        }
        for address in addresses where address.withSecrets.lowercased().hasPrefix("http:") {
            findings.add(
                .plainSecret, .note, path: layout.settings, "the secret in \(address) is sent over plain HTTP",
                why: "an attacker between this machine and the server can read it", advice: "Change the URL to https.")
        }
        return findings
    }

    func history() throws -> Finding? {
        guard let fault = try History.fault(layout) else { return nil }
        return Finding(
            .history, .warning, path: layout.history, fault,
            why: "some changes to the store are missing from the history", advice: Advice(moult: "recover"))
    }

    func holds() throws -> Finding? {
        guard let fault = try store.holds.fault else { return nil }
        return Finding(
            .holds, path: layout.holds, fault, why: "no release can be installed", advice: Advice(moult: "recover"))
    }

    /// Finds files that have replaced directories of moult, and other things that have replaced its files.
    func kinds() throws -> [Finding] {
        func finding(_ path: String, _ what: String) throws -> Finding {
            Finding(
                .wrongKind, path: path, what, why: "no command can change the store",
                advice: try Files.facts(path)?.kind == .link ? "\(run: ["rm", path])" : .movingAway(path, layout))
        }
        let directories = try (layout.directories + [layout.feed, layout.keys]).filter {
            try Files.factsThroughLinks($0).map { $0.kind != .directory } ?? false
        }
        // The history and the holds have findings of their own.
        let files = try [layout.links, layout.checks].filter { try Files.facts($0).map { $0.kind != .file } ?? false }
        return try directories.map { try finding($0, "it is not a directory") }
            + files.map { try finding($0, "it is not a regular file") }
    }

    func unknownFiles() throws -> [Finding] {
        var strange = try Files.list(layout.hidden).map { "\(layout.hidden)/\($0)" }.filter { !layout.own.contains($0) }
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
                .unknown, .warning, path: $0, "unknown file",
                why: "this version of moult does not use a file of this name; another program may have created it",
                advice: try .movingAway($0, layout))
        }
    }

    func unreadable() throws -> [Finding] {
        // If the link `current` cannot be read, every generation counts as kept; `pointer` reports that fault.
        let current = try? store.installedName
        var names = try Generation.names(layout)
        if let current, !names.contains(current) { names.append(current) }
        return try names.compactMap { name in
            do {
                _ = try store.generation(name)
                return nil
            } catch let error as MoultError {
                if Files.isDenied(error) { throw error }
                let isCurrent = name == current
                return Finding(
                    .generation, path: layout.generation(name), error.why ?? error.what,
                    why: isCurrent ? "this generation is in service" : "the store cannot roll back to this generation",
                    advice: isCurrent ? .installing(settings) : Advice(moult: "clean"))
            }
        }
    }

    func unused() throws -> [Finding] {
        // If the link `current` cannot be read, the generations in use are unknown. `pointer` reports that, and `unreadable`
        // reports damaged generations.
        guard try pointer() == nil else { return [] }
        let broken = try unreadable().map(\.path)
        return try Collector(layout: layout, settings: settings).collect(dry: true).removed.compactMap { name in
            if broken.contains(layout.generation(name)) { return nil }
            return Finding(
                .unused, .note, path: layout.generation(name), "no process uses this generation",
                why: "the generation only takes up disk space", advice: Advice(moult: "clean"))
        }
    }

    /// Finds a missing `/proc`: kernel leases and locks work without it, but processes and their open files cannot be listed.
    func processes() throws -> Finding? {
        if try Files.facts("\(SystemFeatures.proc)/self") != nil { return nil }
        return Finding(
            .proc, .note, path: SystemFeatures.proc, "/proc is not mounted",
            why: "moult cannot see the open files of other processes or the type of a file system",
            advice: "\(run: ["mount", "-t", "proc", "proc", "/proc"])")
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
            else { return nil }
            places.append(system.mountPoint)
            return Finding(
                .network, .warning, path: path, "\(system.mountPoint) is a \(system.type) file system",
                why: "file locks and shared memory may not work between machines, which can corrupt databases",
                advice: "Copy the data to a local file system: \(run: ["cp", "-a", path, "LOCAL"])")
        }
    }
}
