package import MoultBasics

extension MoultError.Code {
    /// A user other than root and the user who runs the command can change the store, its settings or a saved plan.
    package static let custody = Self(804)
    /// The settings of a store are invalid.
    package static let settings = Self(801)
    /// A generation is damaged or does not match its record.
    package static let generation = Self(803)
    /// This version does not support the operation.
    package static let notBuilt = Self(501)
    /// A saved plan is out of date.
    package static let stale = Self(502)
}
