package import MoultBasics

extension MoultError.Code {
    /// A user other than root, or than the one who runs the command, can change the store or its settings.
    package static let custody = Self(804)
    /// The settings of a store cannot be understood.
    package static let settings = Self(801)
    /// A generation is damaged, or not what was recorded.
    package static let generation = Self(803)
    /// Something that this version does not do.
    package static let notBuilt = Self(501)
    /// A saved plan does not fit any more.
    package static let stale = Self(502)
}
