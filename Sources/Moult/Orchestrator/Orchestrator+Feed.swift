package import MoultBasics
internal import MoultFiles
internal import MoultTransport
package import StepKit

extension Orchestrator {
    package struct FeedStatus: Sendable {
        package let feed: String
        package let serial: Int
        package let expires: Timestamp
        package let provenance: Provenance
        package let installed: Version?
        package let choice: FeedChoice.Result
        package let holds: Holds
        /// The age of the installed data, if it is over the limit in the settings.
        package let oldData: DataAge?
        /// Why the newest release cannot be installed with this request.
        package var obstacle: MoultError?

        /// The release that this store should install in the end; nil if it has the newest available to it.
        package var newest: Feed.Release? { choice.way.last }
    }

    /// Looks for a newer release. If this user may write to the store, saves the verified feed and new key lists, and nothing
    /// else. With `plans`, also plans the update, to find out whether it would be refused.
    package func check(_ request: FeedRequest, plans: Bool = false) throws -> FeedStatus {
        let store = snapshot()
        return try tracing("check", store, { _ in nil }) { try $0.checkOnce(store, request, plans: plans) }
    }

    private func checkOnce(_ store: StoreSnapshot, _ request: FeedRequest, plans: Bool) throws -> FeedStatus {
        let follower = try follower(request, store)
        let current = try follower.ask()
        do {
            // A store of which only the settings are left has no directory of moult.
            try Files.ensureDirectories(layout.downloads)
            // A process that is downloading saves the feed itself.
            if let lock = try FileLock.take(layout.downloadLock, .exclusive) {
                try withExtendedLifetime(lock) { try follower.remember(current) }
            }
        } catch {
            // A user with only read access gets the result, and the feed is not saved.
            if !Files.isDenied(error) { throw error }
        }
        let choice = try follower.choose(from: current, store)
        traffic.note(choice.rollout)
        var status = try feedStatus(current, choice, store)
        if plans { status.obstacle = try obstacle(to: choice, current, follower, store) }
        return status
    }

    private func obstacle(
        to choice: FeedChoice.Result, _ current: FeedReader.Current, _ follower: FeedFollower, _ store: StoreSnapshot
    ) throws -> MoultError? {
        do {
            if let next = try incoming(choice, current, follower) {
                try refusingDamage { _ = try planner(store).update(next, follower.request.update) }
            }
            return nil
        } catch let error as MoultError {
            if error.code == .interrupted { throw error }
            // A user with only read access cannot install releases anyway.
            return Files.isDenied(error) ? nil : error
        }
    }

    package func plan(following request: FeedRequest, deep: Bool) throws -> (status: FeedStatus, plan: Plan?) {
        let store = snapshot()
        let follower = try follower(request, store)
        let current = try follower.reader.ask()
        let choice = try follower.choose(from: current, store)
        let next =
            try repair(current, follower, store, isBehind: choice.hasNext) ?? incoming(choice, current, follower)
            ?? request.version.map { try kept($0, unlike: current, choice, store) }
        let plan: Plan? = try refusingDamage { try next.map { try finding(follower, store, $0, deep: deep) } }
        return (try feedStatus(current, choice, store), plan)
    }

    /// Returns the plan for a release, after asking for the files that it needs. The files of a remote release are not there yet, so
    /// its plan is never deep.
    private func finding(
        _ follower: FeedFollower, _ store: StoreSnapshot, _ next: Planner.Incoming, deep: Bool = false
    ) throws -> Plan {
        let prepared = try avoidingUnfitPatches(store) { planner in
            var prepared = try planner.update(next, follower.request.update)
            let found = try follower.findFiles(of: prepared).map(\.address)
            prepared.plan.origin?.found = found
            return prepared
        }
        guard deep, prepared.plan.manifestPath != nil, prepared.plan.bundle.map({ $0.missing == 0 }) ?? true else {
            return prepared.plan
        }
        return try rehearse(prepared)
    }

    /// Installs the newest release of the feed that is available to this store, through intermediate releases if necessary.
    /// Downloading needs no store lock: meanwhile the store can be read, rolled back and verified.
    package func follow(
        _ request: FeedRequest, wait: Int = 0, announce: @escaping (Plan) throws -> Void = { _ in }
    ) throws -> (status: FeedStatus, result: Result) {
        let asked = snapshot()
        return try tracing("apply", asked, \.result) { try $0.followOnce(asked, request, wait, announce) }
    }

    private func followOnce(
        _ asked: StoreSnapshot, _ request: FeedRequest, _ wait: Int, _ announce: @escaping (Plan) throws -> Void
    ) throws -> (status: FeedStatus, result: Result) {
        var follower = try follower(request, asked)
        let cache = Downloads(layout)
        let lock = try cache.lock(wait: wait, stop: watcher.stopIfAsked)
        defer { withExtendedLifetime(lock) {} }
        let current = try follower.ask()
        follower.prefer(current.place)
        try follower.remember(current)
        var store = asked
        var choice = try follower.choose(from: current, store)
        traffic.note(choice.rollout)
        let first = try feedStatus(current, choice, store)
        var result = Result(generation: try store.installedName)
        // An operator who names a release does not wait, and neither do apps without databases.
        let window = try request.version == nil && store.installedName != nil ? store.settings.window : nil
        let downloads = request.downloadsOnly || window?.isOpen() == false
        if !choice.hasNext, try isUnfinished() {
            result.recovered = try recover(wait: wait)
            store = snapshot()
            choice = try follower.choose(from: current, store)
        }
        if let incoming = try repair(current, follower, store, isBehind: choice.hasNext) {
            result = try install(incoming, follower, recovered: result.recovered, wait, announce).following(result)
        }
        // A missing manifest is an error, unless the command has made a change.
        while result.plan == nil || choice.hasNext, let incoming = try incoming(choice, current, follower) {
            do {
                result = try install(
                    incoming, follower, recovered: result.recovered, wait, announce, onlyDownloading: downloads
                ).following(result)
            } catch let error as MoultError {
                throw try result.plan == nil ? error : error.after(snapshot().installedVersion ?? choice.way[0].version)
            }
            if result.downloaded != nil {
                result.window = request.downloadsOnly ? nil : window
                break
            }
            let next = try follower.choose(from: current, snapshot())
            // Stops if an update has brought the store no closer to the newest release, because the loop would not end.
            guard next.way.count < choice.way.count else { break }
            choice = next
        }
        if let version = request.version {
            store = snapshot()
            if try result.downloaded == nil && (result.plan == nil || store.installedVersion != version) {
                result = try install(
                    kept(version, unlike: current, choice, store), follower, recovered: result.recovered, wait,
                    announce, onlyDownloading: downloads
                ).following(result)
            }
        } else if let reason = choice.withdrawn, !choice.hasNext {
            result = try leave(withdrawn: reason, choice.onWithdrawn, result, wait, announce)
        }
        if result.plan != nil { warning { try cache.trim(to: asked.settings.feed?.cache ?? 0) } }
        return (first, result)
    }

    /// Rolls back from a withdrawn release if the operator or the publisher wants that and a release is kept; otherwise warns.
    private func leave(
        withdrawn reason: String, _ action: Feed.OnWithdrawn?, _ result: Result, _ wait: Int,
        _ announce: @escaping (Plan) throws -> Void
    ) throws -> Result {
        let store = snapshot()
        guard let installed = try store.installed else { return result }
        let target = RollbackTarget(
            layout: layout, settings: try store.settings, current: installed, holds: try store.holds)
        if action == .rollback, try target.exists {
            let back = try locked(wait) { store, recovered in
                try execute(in: store, recovered: recovered, announce) {
                    try planner($0).locked($0).rollback(
                        to: nil, reason: "\(installed.manifest.version) was withdrawn by its publisher: \(reason)",
                        force: false)
                }
            }
            return back.following(result)
        }
        let way: Advice = try target.exists ? "To go back: \(moult: "rollback")" : "No release is kept to go back to."
        let text = "the installed release \(installed.manifest.version) was withdrawn by its publisher: \(reason). "
        watcher.tell(.warning(Advice(text) + way))
        return result
    }

    package func update(
        from manifest: ReleaseSource.Content, _ request: FeedRequest, wait: Int = 0,
        announce: @escaping (Plan) throws -> Void = { _ in }
    ) throws -> Result {
        let store = snapshot()
        return try tracing("apply", store, \.self) { command in
            let follower = try command.follower(request.at(manifest), store)
            let downloads = Downloads(layout)
            let lock = try downloads.lock(wait: wait, stop: watcher.stopIfAsked)
            defer { withExtendedLifetime(lock) {} }
            let result = try install(
                follower.incoming(manifest, readsOnly: false), follower, recovered: [], wait, announce,
                onlyDownloading: request.downloadsOnly)
            if result.plan != nil { warning { try downloads.trim(to: store.settings.feed?.cache ?? 0) } }
            return result
        }
    }

    /// Returns the plan of the update that `update(from:_:)` would make; changes nothing.
    package func plan(from manifest: ReleaseSource.Content, _ request: FeedRequest) throws -> Plan {
        let store = snapshot()
        let follower = try follower(request.at(manifest), store)
        let incoming = try follower.incoming(manifest, readsOnly: true)
        return try refusingDamage { try finding(follower, store, incoming) }
    }

    /// Installs the release with this version: the one that the feed offers, or else one that the store keeps.
    package func update(
        to version: Version, _ request: FeedRequest, wait: Int = 0, announce: @escaping (Plan) throws -> Void = { _ in }
    ) throws -> Result {
        var request = request
        request.version = version
        if try request.downloadsOnly || hasFeed(request) {
            return try follow(request, wait: wait, announce: announce).result
        }
        return try tracing("apply", snapshot(), \.self) { _ in
            try locked(wait) { store, recovered in
                try execute(in: store, recovered: recovered, announce) {
                    try planner($0).locked($0).update(kept(version, $0), request.update)
                }
            }
        }
    }

    /// Returns the plan of the update that `update(to:_:)` would make; changes nothing.
    package func plan(to version: Version, _ request: FeedRequest, deep: Bool) throws -> Plan? {
        var request = request
        request.version = version
        if try hasFeed(request) { return try plan(following: request, deep: deep).plan }
        let store = snapshot()
        return try refusingDamage {
            let prepared = try planner(store).update(kept(version, store), request.update)
            return try deep ? rehearse(prepared) : prepared.plan
        }
    }

    private func hasFeed(_ request: FeedRequest) throws -> Bool {
        try request.place != nil || snapshot().settings.feed != nil
    }

    /// Returns a release that the store keeps, because the feed has none with this version; throws why the feed's release cannot be
    /// installed if it has one.
    private func kept(
        _ version: Version, unlike current: FeedReader.Current, _ choice: FeedChoice.Result, _ store: StoreSnapshot
    ) throws -> Planner.Incoming {
        if try store.installedVersion != version, current.feed.release(version) != nil {
            throw MoultError(
                .refused, .refused, what: "\(version) cannot be installed",
                why: choice.skipped.map(\.why).first ?? "the update stopped before it",
                now: "To see what the feed offers: \(moult: "check")")
        }
        return try kept(version, store, in: current.place.description)
    }

    private func kept(_ version: Version, _ store: StoreSnapshot, in feed: String? = nil) throws -> Planner.Incoming {
        guard let installed = try store.installed else { throw notKept(version, [], feed) }
        if installed.manifest.version == version { return try planner(store).kept(installed) }
        let names = try Generation.names(layout).filter { RollbackTarget.isNamed("\(version)", $0) }
        if names.isEmpty { throw notKept(version, try Generation.names(layout), feed) }
        let target = RollbackTarget(
            layout: layout, settings: try store.settings, current: installed, holds: try store.holds)
        return try planner(store).kept(store.generation(target.choose("\(version)", force: false).name))
    }

    private func notKept(_ version: Version, _ names: [String], _ feed: String?) -> MoultError {
        let kept = names.isEmpty ? "the store keeps no release" : "the store keeps \(names.joined(separator: ", "))"
        return MoultError(
            .notThere, .refused, what: feed.map { "no release \(version) in \($0)" } ?? "no release \(version)",
            why: feed == nil ? "the store follows no feed, and \(kept)" : kept,
            now: feed == nil
                ? "Specify the manifest of the release: \(moult: "apply", "RELEASE")"
                : "To see what the feed offers: \(moult: "check")")
    }

    private func install(
        _ incoming: Planner.Incoming, _ follower: FeedFollower, recovered: [CrashRecovery.Result], _ wait: Int,
        _ announce: @escaping (Plan) throws -> Void, onlyDownloading: Bool = false
    ) throws -> Result {
        let store = snapshot()
        return try avoidingUnfitPatches(store) { planner in
            let prepared = try refusingDamage {
                try waitingForApps(store) { try planner.update(incoming, follower.request.update) }
            }
            let stopwatch = Stopwatch()
            stopwatch.begin(.prepare, "fetch")
            try follower.fetchFiles(of: prepared, watcher)
            stopwatch.pause()
            if onlyDownloading, prepared.plan.changesStore {
                var result = Result(recovered: recovered, generation: try store.installedName)
                result.downloaded = prepared.plan.to.version
                return result
            }
            return try locked(wait) { store, more in
                try execute(in: store, recovered: recovered + more, stopwatch: stopwatch, announce) {
                    try planner.locked($0).update(incoming, follower.request.update)
                }
            }
        }
    }

    /// Returns the release with which to repair a damaged installed release: from the feed, or from saved files if the feed no
    /// longer has it. Nil if no repair is needed. If a newer release is available, only damage that would block its
    /// installation needs repair.
    private func repair(
        _ current: FeedReader.Current, _ follower: FeedFollower, _ store: StoreSnapshot, isBehind: Bool
    ) throws -> Planner.Incoming? {
        guard let name = try store.installedName, let version = try store.installedVersion else { return nil }
        let generation: Generation?
        do { generation = try store.generation(name) } catch {
            if Files.isDenied(error) { throw error }
            generation = nil
        }
        if let generation { if try isBehind || NoOpCheck(store).isWhole(generation) { return nil } }
        if let release = current.feed.release(version), release.withdrawn == nil {
            return try follower.incoming(release, of: current, then: [], notes: [])
        }
        return try generation.map { try planner(store).kept($0) }
    }

    /// Verifies and downloads the release of a saved plan, so that the plan can be applied.
    func fetch(_ origin: Plan.Origin, _ saved: Plan, by planner: Planner, wait: Int) throws -> Planner.Incoming {
        try saved.requireUpToDate(in: layout)
        let store = snapshot()
        // In a store without keys, `plan` has already required the consent to an unsigned release.
        var follower = try follower(FeedRequest(saved.updateRequest, place: origin.place, allowUnsigned: true), store)
        let lock = try Downloads(layout).lock(wait: wait, stop: watcher.stopIfAsked)
        defer { withExtendedLifetime(lock) {} }
        guard let incoming = try follower.incoming(planned: origin) else {
            throw saved.stale("\(origin.place) no longer offers the planned release \(saved.to.version)")
        }
        let prepared = try waitingForApps(store) { try planner.update(incoming, saved.updateRequest) }
        try follower.fetchFiles(of: prepared, watcher)
        return incoming
    }

    /// Returns the delay for this store in milliseconds; 0 before its first release.
    package func pause(within seconds: Int) throws -> Int {
        guard try StoreSnapshot(layout).installedVersion != nil else { return 0 }
        return try Machine.this().pause(
            within: seconds, store: Files.absolute(layout.root), serial: ReplayGuard.read(layout).serial)
    }

    func follower(_ request: FeedRequest, _ store: StoreSnapshot) throws -> FeedFollower {
        let follower = try FeedFollower(planner: planner(store), request: request, watcher: watcher)
        traffic.begin(follower.transport)
        return follower
    }

    private func feedStatus(
        _ current: FeedReader.Current, _ choice: FeedChoice.Result, _ store: StoreSnapshot
    ) throws -> FeedStatus {
        FeedStatus(
            feed: current.place.description, serial: current.feed.serial, expires: current.feed.expires,
            provenance: current.provenance, installed: try store.installedVersion, choice: choice,
            holds: try store.holds, oldData: try DataAge(store).flatMap { $0.isOver() ? $0 : nil })
    }

    private func incoming(
        _ choice: FeedChoice.Result, _ current: FeedReader.Current, _ follower: FeedFollower
    ) throws -> Planner.Incoming? {
        guard let release = choice.way.first else { return nil }
        return try follower.incoming(
            release, of: current, then: choice.way.dropFirst().map(\.version),
            notes: choice.note.map { ["\(choice.way.last?.version ?? release.version): \($0)"] } ?? [])
    }
}

extension Orchestrator.Result {
    /// Returns this result combined with that of an earlier update of the same command: the rows, the quarantine and the
    /// removed generations of both.
    fileprivate func following(_ earlier: Self) -> Self {
        var result = self
        result.earlierPlans = earlier.earlierPlans + [earlier.plan].compactMap(\.self)
        result.rows = earlier.rows
        for fate in rows {
            let index = result.rows.firstIndex {
                $0.database == fate.database && SQLName($0.table) == SQLName(fate.table)
            }
            guard let index else {
                result.rows.append(fate)
                continue
            }
            result.rows[index].carried = fate.carried
            result.rows[index].rejected += fate.rejected
            result.rows[index].kept += fate.kept
            result.rows[index].incomplete += fate.incomplete
            result.rows[index].displaced += fate.displaced
        }
        result.kept = earlier.kept.filter { !quarantine.removed.contains($0) } + kept
        result.quarantine.removed = earlier.quarantine.removed + quarantine.removed
        result.collected.removed = earlier.collected.removed + collected.removed
        result.collected.freed += earlier.collected.freed
        return result
    }
}

extension Plan {
    var updateRequest: UpdateRequest {
        var update = UpdateRequest(
            follow: request.follow, allowDowngrade: request.allowDowngrade, app: request.app,
            consent: Consent(takeOver: request.takeOver, acceptsUnpreserved: request.acceptUnpreserved))
        update.checkTime.fixed = request.checkTimeout
        return update
    }
}

extension MoultError {
    /// Returns the error of an update that was not the first one of a command.
    fileprivate func after(_ installed: Version) -> MoultError {
        var error = self
        let nothing = "Nothing was changed."
        error.what = what.replacing("interrupted before anything was changed", with: "interrupted")
        error.why = [why, "the same command installed release \(installed) first"].compactMap(\.self).joined(
            separator: "; ")
        error.now = now?.replacing(
            text: nothing, with: "Release \(installed) stays installed, and nothing else was changed.")
        return error
    }
}
