package import MoultBasics

extension MoultError.Code {
    /// Two things cannot be compared.
    package static let diff = Self(952)
}
