internal import MoultBasics
public import StepKit

/// When an app looks for a new release: at regular times, and not all apps at once.
///
///     let task = Task { try await store.follow(UpdateSchedule()) }
///     task.cancel()
public struct UpdateSchedule: Sendable, Equatable {
    /// The time between two attempts.
    public var interval: Duration
    /// Up to this time is added to each interval, at random, so that apps that started together do not ask the server together.
    public var jitter: Duration

    /// Creates a schedule, by default every six hours, and up to one hour later.
    public init(every interval: Duration = .seconds(6 * 3600), jitter: Duration = .seconds(3600)) {
        (self.interval, self.jitter) = (max(interval, .seconds(1)), max(jitter, .zero))
    }

    /// Returns the time until the next attempt, given the time since the last one, and a random number from 0 to 1.
    package func pause(since last: Duration?, random: Double) -> Duration {
        guard let last else { return jitter * random }
        return max(.zero, interval - last) + jitter * random
    }
}

extension Store {
    /// Installs new releases of the feed until the task is cancelled, by a schedule: `follow` each time. Ends by throwing
    /// `CancellationError`.
    ///
    /// The first attempt is due when the interval has passed since the last one, also of an earlier run of the app. `report` gets the
    /// result of each attempt: a failure, such as a server that cannot be reached, does not end the schedule.
    public func follow(
        _ schedule: UpdateSchedule, app: Version? = nil, clock: some _Concurrency.Clock<Duration> = ContinuousClock(),
        report: @Sendable (Result<Update, any Error>) async -> Void = { _ in }
    ) async throws {
        var last = try lastAttempt()
        while true {
            try await clock.sleep(for: schedule.pause(since: last, random: .random(in: 0...1)))
            do {
                let update = try await follow(app: app)
                await report(.success(update))
            } catch let error as CancellationError { throw error } catch {
                try Task.checkCancellation()
                await report(.failure(error))
            }
            last = .zero
        }
    }

    /// Returns the time since the last attempt to update; nil if there was none, or if the clock was set back.
    private func lastAttempt() throws -> Duration? {
        guard let attempt = try Attempt.read(StoreLayout(root: directory)) else { return nil }
        let seconds = Timestamp.now.seconds - attempt.time.seconds
        return seconds < 0 ? nil : .seconds(seconds)
    }
}
