"""Finds the places in Swift sources where a mutant can change one operator, constant, condition or call, or the order of two
statements."""
import re
from dataclasses import dataclass

OPERATORS = {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "&&": "||", "||": "&&", "+": "-", "-": "+",
             "*": "+", "%": "*"}
OPERATOR = re.compile(r"(?<= )(==|!=|<=|>=|<|>|&&|\|\||\+|-|\*|%)(?= )")
CONSTANT = re.compile(r"(?<![\w.$])(\d+|true|false)(?![\w.])")
CONDITION = re.compile(r"^(?P<before>\s*(?:\} else )?(?:if|while|guard) )")
VALUE = re.compile(r"^(?P<before>\s+(?:return |(?:let|var) \w+(?:: [\w\[\]?.]+)? = |[\w.]+ \+?-?= ))(?P<value>.+)$")
KEYWORD = re.compile(r"^(return|throw|let|var|case|default|if|else|guard|for|while|switch|func|init|super|self\.init|defer|do|catch|import|"
                     r"precondition\w*|fatalError|assert\w*|struct|class|enum|extension|protocol|static|private|package|public|internal)\b")
CALL = re.compile(r"^\s+(try )?[\w.]+\(.*\)$")
ASSIGNMENT = re.compile(r"^\s+[\w.\[\]]+ [+-]?= [^{]+$")
# The line before a statement ends like this, or is one itself.
BEGINS = re.compile(r"(\{|\}|\bin|^|\))$")
CONTINUES = re.compile(r"^\s*([.?:)\]},]|&&|\|\||\+ |- |\?\?)")


@dataclass(frozen=True)
class Site:
    file: str
    line: int
    kind: str
    old: str
    new: str
    # The lines that replace those from `line` on, in which NUMBER is the number of the mutant.
    text: tuple


def masked(line):
    """Returns a line of the same length in which strings and comments are blank."""
    out, at, quote, depths = [], 0, False, []
    while at < len(line):
        c = line[at]
        if quote:
            if c == "\\" and line[at + 1:at + 2] == "(":
                depths.append(0)
                quote, out, at = False, out + ["_", "_"], at + 2
                continue
            if c == "\\":
                out, at = out + ["_", "_"], at + 2
                continue
            quote = c != '"'
            out.append('"' if c == '"' else "_")
        elif depths:
            # An interpolation, up to its closing parenthesis.
            if c == '"':
                end = line.find('"', at + 1)
                end = len(line) - 1 if end < 0 else end
                out, at = out + ["_"] * (end + 1 - at), end + 1
                continue
            depths[-1] += (c == "(") - (c == ")")
            if depths[-1] < 0:
                depths.pop()
                quote = True
            out.append("_")
        elif c == '"':
            quote = True
            out.append('"')
        elif line.startswith("//", at):
            out += [" "] * (len(line) - at)
            break
        else:
            out.append(c)
        at += 1
    return "".join(out)[:len(line)].ljust(len(line))


def depth_zero(text, wanted):
    """Returns the positions of a text outside of parentheses, brackets and braces."""
    depth, found = 0, []
    for at, c in enumerate(text):
        if depth == 0 and text.startswith(wanted, at):
            found.append(at)
        depth += (c in "([{") - (c in ")]}")
    return found


def is_balanced(text):
    return all(text.count(a) == text.count(b) for a, b in ("()", "[]", "{}"))


def clauses(mask):
    """Returns the ranges of the conditions of an `if`, `while` or `guard` that is on one line."""
    begin = CONDITION.match(mask)
    if not begin:
        return []
    start = begin.end()
    ends = depth_zero(mask[start:], " else {" if "guard " in begin["before"] else " {")
    if not ends:
        return []
    end = start + ends[0]
    cuts = [start, *(start + at + 2 for at in depth_zero(mask[start:end], ", ")), end + 2]
    return [(a, b - 2) for a, b in zip(cuts, cuts[1:])]


def values(mask, following):
    """Returns the range of a value that is on one line."""
    found = VALUE.match(mask.rstrip())
    if not found or not is_balanced(found["value"]) or CONTINUES.match(following) or re.search(r"[-+*/%=&|?:,({\[]$", found["value"]):
        return []
    return [(found.start("value"), found.end("value"))]


def changes(text, mask, is_condition):
    """Returns the kinds and texts of the mutants of an expression."""
    for found in OPERATOR.finditer(mask):
        yield "operator", text[:found.start()] + OPERATORS[found[1]] + text[found.end():]
    for found in CONSTANT.finditer(mask):
        new = {"true": "false", "false": "true"}.get(found[1]) or str(int(found[1]) + 1)
        yield "constant", text[:found.start()] + new + text[found.end():]
    if is_condition:
        yield "condition", f"!({text})"


def is_statement(mask, before, following):
    return ((CALL.match(mask) or ASSIGNMENT.match(mask)) and not KEYWORD.match(mask.strip()) and is_balanced(mask)
            and BEGINS.search(before.rstrip()) and not CONTINUES.match(following))


def is_without_order(a, b):
    """Returns whether two statements only set two variables, and none of them reads the one that the other one sets."""
    if not (ASSIGNMENT.match(" " + a) and ASSIGNMENT.match(" " + b)):
        return False
    first, second = (re.match(r"[\w.]+", text)[0].split(".")[-1] for text in (a, b))
    return first != second and not re.search(rf"\b{second}\b", a) and not re.search(rf"\b{first}\b", b)


def sites(file, text):
    lines, found, is_text = text.splitlines(), [], False
    masks = []
    for line in lines:
        quotes = line.count('"""')
        masks.append("" if is_text or quotes else masked(line))
        is_text ^= quotes % 2 == 1
    masks += ["", ""]
    for at, line in enumerate(lines):
        mask, following = masks[at].rstrip(), masks[at + 1]
        conditions = clauses(mask)
        for start, end in conditions or values(mask, following):
            attempt = "try " if mask.startswith("try ", start) else ""
            start += len(attempt)
            part, masked_part = line[start:end], mask[start:end]
            if re.match(r"(let|var|case|#|try|await)\b", masked_part) or re.search(r"\b(try|await)\b|[{]", masked_part):
                continue
            for kind, new in changes(part, masked_part, bool(conditions)):
                whole = f"{line[:start]}(moult_mutant(NUMBER) ? ({new}) : ({part})){line[end:]}"
                found.append(Site(file, at + 1, kind, part, new, (whole,)))
        previous = masks[at - 1] if at else ""
        if not is_statement(mask, previous, following):
            continue
        indent = line[:len(line) - len(line.lstrip())]
        if CALL.match(mask):
            found.append(Site(file, at + 1, "call", line.strip(), "(nothing)", (f"{indent}if !moult_mutant(NUMBER) {{ {line.strip()} }}",)))
        if at + 1 < len(lines) and is_statement(following.rstrip(), ")", masks[at + 2]) and lines[at + 1].startswith(indent) and lines[at + 1][len(indent)] != " ":
            a, b = line.strip(), lines[at + 1].strip()
            if is_without_order(a, b):
                continue
            found.append(Site(file, at + 1, "order", f"{a}; {b}", f"{b}; {a}", (f"{indent}if moult_mutant(NUMBER) {{ {b}; {a} }} else {{ {a}; {b} }}", "")))
    return found
