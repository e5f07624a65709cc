package struct AppContent {
    package var rows: [String: Int] = [:]
    package var isEmpty: Bool { true }
    package init(of live: Connection, since pristine: Connection, excluding: [RowSelection], ignoring: Set<String>) throws {}
}
