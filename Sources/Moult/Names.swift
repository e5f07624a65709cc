// The names that an app needs when it uses this library, so that `import Moult` is enough.
@_exported public import struct MoultBasics.MoultError
@_exported public import struct StepKit.Policy
@_exported public import struct StepKit.Version
