"""When an app looks for a new release: at regular times, and not all apps at once."""

from __future__ import annotations

import calendar
import time
from dataclasses import dataclass
from typing import Optional

from .results import Status


@dataclass(frozen=True)
class UpdateSchedule:
    """By default every six hours, and up to one hour later. The times are in seconds."""

    #: The time between two attempts.
    interval: float = 6 * 3600
    #: Up to this time is added to each interval, at random, so that apps that started together do not ask the server together.
    jitter: float = 3600

    def pause(self, since_last: Optional[float], random: float) -> float:
        """Returns the time until the next attempt, given the time since the last one, and a random number from 0 to 1."""
        later = max(0, self.jitter) * random
        return later if since_last is None else max(0, max(1, self.interval) - since_last) + later


def since_last_attempt(status: Status) -> Optional[float]:
    """Returns the time since the last attempt to update; None if there was none, or if the clock was set back."""
    attempt = status.json.get("attempt")
    if attempt is None:
        return None
    seconds = time.time() - calendar.timegm(time.strptime(attempt["time"], "%Y-%m-%dT%H:%M:%SZ"))
    return None if seconds < 0 else seconds
