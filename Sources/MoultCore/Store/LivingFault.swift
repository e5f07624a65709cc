internal import MoultBasics
internal import MoultSQLite
package import StepKit

/// Why a living database will not load; found out without changing it.
package struct LivingFault {
    let layout: StoreLayout
    let generation: Generation

    package init(layout: StoreLayout, generation: Generation) { (self.layout, self.generation) = (layout, generation) }

    /// What is wrong with the database; nil if it can be opened. Throws what may pass by itself, such as a lock.
    package func find(in database: Database) throws -> String? { try look(into: database).fault }

    /// The same, with what could not be checked because it needs the app, and why.
    package func look(into database: Database) throws -> (fault: String?, notChecked: [String]) {
        let place = try layout.place(of: database)
        let template = try SchemaShape(of: Connection(path: generation.path(database.member), access: .immutable))
        let fitness = try Fitness.of(place, deadline: 600) { try fault(Identity(of: $0), database, template) }
        switch fitness {
        case .fits(let notChecked): return (nil, notChecked)
        case .missing: return ("it is not there", [])
        case .unfit(let why): return (why, [])
        case .untold(let error): throw error
        }
    }

    private func fault(_ found: Identity, _ database: Database, _ template: SchemaShape) throws -> String? {
        if database.kind == .cache {
            if let difference = found.shape.diff(against: template).first { return difference }
            return database.compatible?.fault(
                applicationID: Int(found.applicationID), userVersion: Int(found.userVersion))
        }
        // What the app has made of the user's database is the app's; but something of the release's must be there.
        let names = Set(found.shape.tables.map { $0.name.lowercased() })
        let isOurs = template.tables.isEmpty || template.tables.contains { names.contains($0.name.lowercased()) }
        return isOurs ? nil : "it has none of the tables of release \(generation.manifest.version)"
    }
}
