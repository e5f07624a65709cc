// What an app names when it uses this library, so that `import Moult` is all it needs.
@_exported public import struct MoultBasics.MoultError
@_exported public import struct StepKit.Policy
@_exported public import struct StepKit.Version
