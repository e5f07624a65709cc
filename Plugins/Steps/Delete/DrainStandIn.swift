enum Drain { static func drain(_ path: String) throws {} }
