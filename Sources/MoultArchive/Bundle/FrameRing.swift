internal import Glibc

/// Buffers that go round between the one that fills them and the threads that compress them.
///
/// Slots are used in a circle, so what comes out is in the order in which it went in, whoever was faster.
final class FrameRing: @unchecked Sendable {
    // Sendable because `slots`, `next`, `isClosed` and `error` are touched under the lock only, and a slot's buffers
    // only by whom its state names: the filler while it is `free` or `packed`, one worker while it is `taken`.

    enum State {
        case free
        case filled
        case taken
        case packed
    }

    struct Slot {
        let content: UnsafeMutableRawBufferPointer
        let packed: UnsafeMutableRawBufferPointer
        var state = State.free
        /// Which frame it is, how much content it has, and how much that is when packed.
        var frame = 0
        var contentSize = 0
        var packedSize = 0

        var filledContent: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: content[..<contentSize]) }
        var filledPacked: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: packed[..<packedSize]) }
    }

    private var slots: [Slot]
    private var next = 0
    private var isClosed = false
    private var error: (any Error)?
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init(slots count: Int, contentSize: Int, packedSize: Int) {
        slots = (0..<count).map { _ in
            Slot(
                content: .allocate(byteCount: contentSize, alignment: 4096),
                packed: .allocate(byteCount: packedSize, alignment: 4096))
        }
        pthread_mutex_init(lock, nil)
        pthread_cond_init(changed, nil)
    }

    deinit {
        for slot in slots {
            slot.content.deallocate()
            slot.packed.deallocate()
        }
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(lock)
        changed.deallocate()
        lock.deallocate()
    }

    private func locked<Result>(_ body: () throws -> Result) rethrows -> Result {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return try body()
    }

    // MARK: The filler's side

    /// The slot for a frame once no worker has it: either free, or with the packed frame of one circle ago.
    func slot(for frame: Int) throws -> Slot {
        try locked {
            while true {
                if let error { throw error }
                let slot = slots[frame % slots.count]
                switch slot.state {
                case .free, .packed: return slot
                case .filled, .taken: pthread_cond_wait(changed, lock)
                }
            }
        }
    }

    /// Gives a frame's content, which is in its slot's buffer, to the workers.
    func submit(frame: Int, contentSize: Int) {
        locked {
            slots[frame % slots.count].frame = frame
            slots[frame % slots.count].contentSize = contentSize
            slots[frame % slots.count].state = .filled
            pthread_cond_broadcast(changed)
        }
    }

    /// Makes a slot free after its packed frame was used.
    func release(frame: Int) { locked { slots[frame % slots.count].state = .free } }

    /// Lets the workers end when nothing is left to do.
    func close() {
        locked {
            isClosed = true
            pthread_cond_broadcast(changed)
        }
    }

    var slotCount: Int { slots.count }

    // MARK: The workers' side

    /// The next frame to compress; nil when there will be no more, or after an error.
    func take() -> Slot? {
        locked {
            while true {
                let index = next % slots.count
                if error != nil { return nil }
                if case .filled = slots[index].state {
                    slots[index].state = .taken
                    next += 1
                    return slots[index]
                }
                if isClosed { return nil }
                pthread_cond_wait(changed, lock)
            }
        }
    }

    func finish(_ slot: Slot, packedSize: Int) {
        locked {
            slots[slot.frame % slots.count].packedSize = packedSize
            slots[slot.frame % slots.count].state = .packed
            pthread_cond_broadcast(changed)
        }
    }

    func fail(_ error: any Error) {
        locked {
            self.error = self.error ?? error
            pthread_cond_broadcast(changed)
        }
    }
}
