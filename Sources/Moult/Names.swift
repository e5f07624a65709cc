// Re-exports the names that apps need, so that `import Moult` is enough.
@_exported public import struct MoultBasics.MoultError
@_exported public import struct StepKit.Policy
@_exported public import struct StepKit.Version
