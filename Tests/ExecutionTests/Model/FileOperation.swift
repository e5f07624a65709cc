/// An operation of a program on the files below a directory. Paths are relative to that directory.
enum FileOperation: Equatable {
    case makeFile(String)
    case makeDirectory(String)
    case makeLink(String, to: String)
    case write(String, at: Int, [UInt8])
    case resize(String, to: Int)
    case rename(String, to: String)
    case exchange(String, String)
    /// Adds a name to a file.
    case name(String, as: String)
    case remove(String)
    case sync(String)

    /// The call and its file, in words.
    var text: String {
        switch self {
        case .makeFile(let path): "create \(path)"
        case .makeDirectory(let path): "mkdir \(path)"
        case .makeLink(let path, let target): "symlink \(path) -> \(target)"
        case .write(let path, let offset, let bytes): "write \(path) \(offset)+\(bytes.count)"
        case .resize(let path, let size): "truncate \(path) \(size)"
        case .rename(let old, let new): "rename \(old) \(new)"
        case .exchange(let one, let other): "exchange \(one) \(other)"
        case .name(let old, let new): "link \(old) \(new)"
        case .remove(let path): "remove \(path)"
        case .sync(let path): "sync \(path)"
        }
    }
}
