"""Writes the result of a run into the table of docs/proof.md: its row is the one that ends with the command."""
import datetime, pathlib, subprocess

root = pathlib.Path(__file__).resolve().parent.parent.parent


def version():
    """Returns the commit that is checked out, and today's date."""
    described = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty", "--abbrev=8"], check=True, text=True, stdout=subprocess.PIPE)
    return f"{described.stdout.strip()}, {datetime.date.today()}"


def cells(page, command):
    """Returns the number of the line with the row of this command, and its cells."""
    for number, line in enumerate(pathlib.Path(page).read_text().split("\n")):
        row = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and row[-1] == f"`{command}`":
            return number, row
    raise SystemExit(f"{page} has no row that ends with `{command}`")


def write(page, command, tried, wrong):
    """Writes what a run has tried, the number of wrong results, and the commit."""
    number, row = cells(page, command)
    lines = pathlib.Path(page).read_text().split("\n")
    lines[number] = "| " + " | ".join([row[0], tried, str(wrong), version(), row[-1]]) + " |"
    pathlib.Path(page).write_text("\n".join(lines))
