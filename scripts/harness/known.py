"""The failures that are known and not fixed yet: see known-failures."""
import collections, configparser, os, re

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "known-failures")


def failures():
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(FILE)
    return {name: parser[name] for name in parser.sections()}


class Search:
    """The known failures that one harness looks for. A complete search must find each of them."""

    def __init__(self, harness, is_complete):
        self.is_complete, self.found = is_complete, collections.Counter()
        self.patterns = {name: re.compile(entry[harness], re.DOTALL) for name, entry in failures().items() if harness in entry}

    def knows(self, failure):
        """Returns whether a failure is known, and lists it."""
        name = next((name for name, pattern in self.patterns.items() if pattern.search(failure)), None)
        if name:
            self.found[name] += 1
            if self.found[name] <= 3:
                print(f"known: {name}: {' '.join(failure.split())[:300]}", flush=True)
        return name is not None

    def report(self):
        lines = [f"known failure, found {count} times: {name}" for name, count in self.found.items()]
        gone = [name for name in self.patterns if name not in self.found] if self.is_complete else []
        lines += [f"gone: remove it from scripts/harness/known-failures: {name}" for name in gone]
        return "".join(line + "\n" for line in lines)
