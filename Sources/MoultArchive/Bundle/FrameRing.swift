internal import MoultFiles

/// Buffers that circulate between the thread that fills them and the threads that compress them.
///
/// Slots are used in a circle, so the output has the order of the input, however fast each thread is.
final class FrameRing: @unchecked Sendable {
    // Sendable because `slots`, `next`, `isClosed` and `error` are touched inside of the monitor only, and a slot's buffers
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

    // MARK: The filler's side

    /// The slot for a frame once no worker has it: either free, or with the packed frame of one circle ago.
    func slot(for frame: Int) throws -> Slot {
        try monitor.locked {
            let index = frame % slots.count
            monitor.wait { error == nil && (slots[index].state == .filled || slots[index].state == .taken) }
            if let error { throw error }
            return slots[index]
        }
    }

    /// Returns a frame's content, which is in its slot's buffer, to the workers.
    func submit(frame: Int, contentSize: Int) {
        monitor.locked {
            slots[frame % slots.count].frame = frame
            slots[frame % slots.count].contentSize = contentSize
            slots[frame % slots.count].state = .filled
        }
    }

    /// Makes a slot free after its packed frame was used.
    func release(frame: Int) { monitor.locked { slots[frame % slots.count].state = .free } }

    /// Lets the workers end when nothing is left to do.
    func close() { monitor.locked { isClosed = true } }

    var slotCount: Int { slots.count }

    // MARK: The workers' side

    /// The next frame to compress; nil when there will be no more, or after an error.
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
