package import MoultBasics

extension Salvage {
    /// An error while the new file was written, for instance because the disk is full. It is not a fault of the source.
    package struct TargetFailure: Error {
        package let error: MoultError
        package init(error: MoultError) { self.error = error }
    }

    package struct Reading: Sendable {
        package var report: Report
        /// Whether another way of reading the files may find more.
        package var isDamaged: Bool

        package init(report: Report, isDamaged: Bool) { (self.report, self.isDamaged) = (report, isDamaged) }
    }

    /// Reads one damaged file table by table, as far as SQLite can read it.
    package struct Reader {
        let source: Connection
        let target: Connection

        /// The time limit in seconds, because the file may be malicious.
        private static let deadline: Double = 300

        package init(_ path: String, into target: String) throws {
            source = try Connection(path: path, access: .readWrite)
            // The first read rolls back the copy's journal or recovers its WAL.
            _ = try source.int("PRAGMA schema_version")
            try source.raiseGuard(deadline: Self.deadline)
            // A table whose schema cannot be parsed must not prevent reading the others.
            try source.set(.defensive, false)
            try source.set(.writableSchema, true)
            self.target = try Connection(path: target, access: .readWriteCreate)
            try self.target.limitValues(to: source.valueLimit)
        }

        package func read() throws -> Reading {
            let schema = try Schema(of: source)
            var report = Report()
            var isDamaged = schema.note != nil
            report.note = schema.note
            try prepareTarget()
            func add(_ name: String, _ salvage: () throws -> Outcome) throws {
                // The loss of one table does not stop the salvage of the others.
                let outcome = try attempt(salvage)
                isDamaged = isDamaged || outcome.isDamaged
                report.tables.append(
                    Table(name: name, rows: outcome.rows, isWhole: outcome.why == nil, why: outcome.why))
            }
            func make(_ object: Schema.Object) throws {
                do { try create(object.sql) } catch {
                    let why = try Self.reason(error)
                    report.missing.append(Missing(kind: object.type, name: object.name, why: why))
                    isDamaged = isDamaged || AppNeed(error) == nil
                }
            }
            for table in schema.tables { try add(table.name) { try copy(table) } }
            for table in schema.virtual where !table.isRebuilt { try add(table.object.name) { try copy(table) } }
            for object in schema.others where object.type != "trigger" { try make(object) }
            // These tables show or index the content of other tables and views, so they are created after them.
            for table in schema.virtual where table.isRebuilt { try add(table.object.name) { try rebuild(table) } }
            // Created last, so that no trigger fires for a copied row.
            for object in schema.others where object.type == "trigger" { try make(object) }
            try copySequences(&report)
            try target.close()
            try source.close()
            return Reading(report: report, isDamaged: isDamaged)
        }

        struct Outcome {
            var rows = 0
            var isDamaged = false
            var why: String?
        }

        private func prepareTarget() throws {
            // This must precede the first table: text in another encoding would be converted.
            if case .text(let encoding)? = try source.scalar("PRAGMA encoding") {
                try target.run("PRAGMA encoding = \(quoteLiteral(.text(encoding)))")
            }
            try target.set(.foreignKeys, false)
            // Triggers are created last, but a damaged schema can have one in place of a table.
            try target.set(.triggers, false)
            // Rows that violate a CHECK constraint also belong to the user, and the constraint may use the app's functions.
            try target.execute(
                """
                PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; PRAGMA ignore_check_constraints = 1;
                PRAGMA user_version = \(try source.int("PRAGMA user_version"));
                PRAGMA application_id = \(try source.int("PRAGMA application_id"))
                """)
        }

        private func attempt(_ salvage: () throws -> Outcome) throws -> Outcome {
            do { return try salvage() } catch {
                if try target.isInTransaction { try target.execute("ROLLBACK") }
                // A missing function of the app is not damage: the other methods of reading the file would not have it either.
                return Outcome(isDamaged: AppNeed(error) == nil, why: try Self.reason(error))
            }
        }

        /// Returns the reason for a failure; throws if the cause is the new file.
        static func reason(_ error: any Error) throws -> String {
            if error is TargetFailure { throw error }
            guard let moultError = error as? MoultError else { return "\(error)" }
            if error.sqlite?.resultCode.primary == .full { throw TargetFailure(error: moultError) }
            if let need = AppNeed(error) { return "it needs the app's \(need)" }
            return moultError.why ?? moultError.what
        }

        /// Runs a statement from the damaged file's schema, whose text is untrusted.
        func create(_ sql: String) throws {
            try target.raiseScriptGuard(deadline: Self.deadline)
            let made = Result { try target.run(sql) }
            try target.lowerScriptGuard()
            try made.get()
        }

        /// Copies the counters of AUTOINCREMENT tables, so that no id is reused.
        private func copySequences(_ report: inout Report) throws {
            do {
                let counters = try RowSequences.all(in: source)
                try target.transaction(.deferred) { try RowSequences.raise(counters, in: target) }
            } catch {
                let why = try Self.reason(error)
                report.missing.append(Missing(kind: "table", name: "sqlite_sequence", why: why))
            }
        }
    }
}
