/// Returns "Did you mean …?" with the candidate nearest to a misspelled word; nil if none is near.
public func didYouMean(_ word: String, among candidates: [String]) -> Advice? {
    nearest(to: word, among: candidates).map { "Did you mean \"\($0)\"?" }
}

/// Returns the shortest candidate that starts with the word, or otherwise the one with the fewest insertions, deletions,
/// replacements or swaps of letters; nil if more than a third would have to change.
public func nearest(to word: String, among candidates: [String]) -> String? {
    // Such a long word is not a typo, and computing its distance would take too long.
    if word.utf8.count > 64 { return nil }
    // A prefix of at least three letters selects the shortest candidate that starts with it.
    let start = word.lowercased()
    if start.count >= 3,
        let begun = candidates.filter({ $0.lowercased().hasPrefix(start) }).min(by: { $0.count < $1.count })
    {
        return begun
    }
    let scored = candidates.map { ($0, distance(word.lowercased(), $0.lowercased())) }
    guard let best = scored.min(by: { $0.1 < $1.1 }) else { return nil }
    return best.1 <= max(1, max(word.count, best.0.count) / 3) ? best.0 : nil
}

/// Returns the Levenshtein distance, with a swap of adjacent letters as a single change.
func distance(_ a: String, _ b: String) -> Int {
    let a = Array(a)
    let b = Array(b)
    var beforeLast: [Int] = []
    var last = Array(0...b.count)
    for i in a.indices {
        var row = [i + 1]
        for j in b.indices {
            var cost = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
            if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { cost = min(cost, beforeLast[j - 1] + 1) }
            row.append(cost)
        }
        beforeLast = last
        last = row
    }
    return last[b.count]
}
