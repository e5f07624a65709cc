package import MoultBasics

extension MoultError.Code {
    /// A build script has a part that cannot be read or run.
    package static let script = Self(940)
    /// A file with rows cannot be imported.
    package static let importing = Self(941)
    /// A script uses a file outside its own directory.
    package static let outside = Self(942)
    /// A `${name}` has no value.
    package static let substitution = Self(943)
    /// The version cannot be taken from the repository.
    package static let repository = Self(944)
    /// The output path cannot be used.
    package static let output = Self(945)
}
