package import MoultBasics

extension MoultError.Code {
    /// There is no store at the path, or it cannot be used.
    package static let store = Self(800)
    /// A user other than root, or than the one who runs the command, can change the store or its settings.
    package static let custody = Self(804)
    /// The settings of a store cannot be understood.
    package static let settings = Self(801)
    /// Another process has the store's lock.
    package static let locked = Self(802)
    /// A generation is damaged, or not what was recorded.
    package static let generation = Self(803)
    /// The planned release is refused.
    package static let refused = Self(500)
    /// A file's digest is not the one that the manifest has.
    package static let digest = Self(601)
    /// Something that this version does not do.
    package static let notBuilt = Self(501)
    /// A saved plan does not fit any more.
    package static let stale = Self(502)
    /// There is not enough room.
    package static let space = Self(503)
    /// Stopped by the person at the keyboard.
    package static let interrupted = Self(600)
    /// The update failed after its decision and was undone (exit 5, or 75 if a program kept a file in use).
    package static let undone = Self(700)
    /// A consumer did not reload.
    package static let consumer = Self(702)
    /// The update could be neither finished nor undone.
    package static let stuck = Self(701)
}
