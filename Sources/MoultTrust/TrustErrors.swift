internal import CCrypto
internal import MoultBasics

/// Returns the error for a failed libcrypto call, with the library's message; empties its error queue.
func cryptoError(_ doing: String) -> MoultError {
    var words: String?
    let number = ERR_get_error()
    if number != 0 {
        var text = [CChar](repeating: 0, count: 256)
        ERR_error_string_n(number, &text, text.count)
        words = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
    ERR_clear_error()
    return MoultError(.crypto, what: "libcrypto cannot \(doing)", why: words ?? "it gives no reason")
}
