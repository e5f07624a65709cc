internal import MoultFiles

/// Buffers that circulate between the thread that fills them and the threads that compress them.
///
/// The slots form a ring, so the output has the order of the input, regardless of the speed of each thread.
final class FrameRing: @unchecked Sendable {
    // Sendable because `slots`, `next`, `isClosed` and `error` are accessed only within the monitor, and a slot's
    // buffers only by the thread that its state names: the filler while it is `free` or `packed`, one worker while it
    // is `taken`.

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
        /// The number of the frame, the size of its content, and its compressed size.
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
    private let monitor = Monitor()

    init(slots count: Int, contentSize: Int, packedSize: Int) {
        slots = (0..<count).map { _ in
            Slot(
                content: .allocate(byteCount: contentSize, alignment: 4096),
                packed: .allocate(byteCount: packedSize, alignment: 4096))
        }
    }

    deinit {
        for slot in slots {
            slot.content.deallocate()
            slot.packed.deallocate()
        }
    }

    // MARK: filler

    /// Waits until no worker has the slot for a frame, and returns the slot: either free, or with the compressed frame from the
    /// previous round.
    func slot(for frame: Int) throws -> Slot {
        try monitor.locked {
            let index = frame % slots.count
            monitor.wait { error == nil && (slots[index].state == .filled || slots[index].state == .taken) }
            if let error { throw error }
            return slots[index]
        }
    }

    /// Passes a frame's content, which is in its slot's buffer, to the workers.
    func submit(frame: Int, contentSize: Int) {
        monitor.locked {
            slots[frame % slots.count].frame = frame
            slots[frame % slots.count].contentSize = contentSize
            slots[frame % slots.count].state = .filled
        }
    }

    /// Frees a slot after its compressed frame was used.
    func release(frame: Int) { monitor.locked { slots[frame % slots.count].state = .free } }

    /// Lets the workers exit when all frames are done.
    func close() { monitor.locked { isClosed = true } }

    // MARK: workers

    /// Returns the next frame to compress; nil after the last one or after an error.
    func take() -> Slot? {
        monitor.locked {
            monitor.wait { error == nil && !isClosed && slots[next % slots.count].state != .filled }
            let index = next % slots.count
            guard error == nil, slots[index].state == .filled else { return nil }
            slots[index].state = .taken
            next += 1
            return slots[index]
        }
    }

    func finish(_ slot: Slot, packedSize: Int) {
        monitor.locked {
            slots[slot.frame % slots.count].packedSize = packedSize
            slots[slot.frame % slots.count].state = .packed
        }
    }

    func fail(_ error: any Error) { monitor.locked { self.error = self.error ?? error } }
}
