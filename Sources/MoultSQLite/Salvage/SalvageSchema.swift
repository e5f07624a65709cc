import MoultBasics

extension Salvage {
    struct Schema {
        struct Object {
            let type: String
            let name: String
            let sql: String
        }

        /// A virtual table, and the tables in which its module keeps the content.
        struct Virtual {
            enum Content: Equatable {
                /// In one of the module's tables, with one row for each row of the virtual table.
                case own(table: String)
                /// Only in the virtual table, which must be queried.
                case inside
                /// In another table, from which the index is rebuilt.
                case elsewhere
                /// Nowhere: only the index was kept.
                case nowhere
                /// Nowhere: the table only presents content of other tables.
                case derived
            }

            let object: Object
            let module: String
            let content: Content

            /// Whether the table can be created only after all other tables and views.
            var isRebuilt: Bool { content == .elsewhere || content == .derived }
        }

        var tables: [Object] = []
        var virtual: [Virtual] = []
        /// Indexes, views and triggers, in an order in which they can be created.
        var others: [Object] = []
        var note: String?

        init(of connection: Connection) throws {
            var objects: [Object] = []
            do {
                try connection.withStatement("SELECT type, name, sql FROM sqlite_schema") { rows in
                    while try rows.step() {
                        // An index of a UNIQUE or PRIMARY KEY constraint has no text, and is created with its table.
                        if rows.isNull(2) { continue }
                        let object = Object(type: try rows.text(0), name: try rows.text(1), sql: try rows.text(2))
                        if !SQLName(object.name).isInternal { objects.append(object) }
                    }
                }
            } catch {
                if objects.isEmpty { throw error }
                note = (error as? MoultError)?.why
            }
            let tables = objects.filter { $0.type == "table" }
            virtual = tables.compactMap { Self.virtual($0) }
            let made = Dictionary(virtual.map { (SQLName($0.object.name), $0.object.sql) }) { first, _ in first }
            self.tables = tables.filter { table in
                if made[SQLName(table.name)] != nil { return false }
                let owner = ModuleTables.owner(of: table.name).flatMap { made[SQLName($0)] }
                return owner.flatMap { ModuleTables.isPart(table.name, madeBy: table.sql, ofTableMadeBy: $0) } != true
            }
            // A trigger may be on a view.
            for type in ["view", "index", "trigger"] { others += objects.filter { $0.type == type } }
        }

        /// Parses `CREATE VIRTUAL TABLE name USING module(arguments)`; nil for an ordinary table.
        private static func virtual(_ object: Object) -> Virtual? {
            guard sqlTokens(object.sql).dropFirst().first?.isWord("virtual") == true,
                let module = ModuleTables.module(ofTableMadeBy: object.sql)
            else { return nil }
            let content: Virtual.Content =
                switch module {
                case "fts3", "fts4", "fts5":
                    SearchIndexes.option(ofIndexMadeBy: object.sql).map { $0.isEmpty ? .nowhere : .elsewhere }
                        ?? .own(table: "\(object.name)_content")
                case "rtree", "rtree_i32", "geopoly": .inside
                // These modules show the index of another table.
                case "fts5vocab", "fts4aux": .derived
                default: .nowhere
                }
            return Virtual(object: object, module: module, content: content)
        }
    }
}
