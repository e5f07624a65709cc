# The common part of the walkthroughs, sourced by ./*/run and by scripts/demo.
#
# Takes the command from $MOULT, else from PATH; goes into a scratch directory with a copy of "$drafts" in it, which is
# removed at the end unless KEEP is set; and defines `title` and `try`.
set -eu

moult=$(command -v "${MOULT:-moult}") || {
    echo "command not found: ${MOULT:-moult}. Install it, or set its path: MOULT=path/to/moult $0" >&2
    exit 127
}
case $moult in
/*) ;;
*) moult=$PWD/$moult ;;
esac

scratch=$(mktemp -d)
# Generations are sealed: their directories must become writable before they can be removed.
[ "${KEEP:-}" ] || trap 'chmod -R u+w "$scratch" && rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
cp -R "$drafts" "$scratch/drafts"
cd "$scratch"
unset MOULT_STORE
# `try` captures the output of moult in a variable. On a terminal, the output must have colours nevertheless.
if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then export CLICOLOR_FORCE=1; fi
escape=$(printf '\033')

title() { printf '\n# %s\n' "$*"; }

# try STATUS TEXT WORD...: prints and runs `moult WORD...`, which must end with the status and print the text.
try() {
    status=$1 text=$2
    shift 2
    printf '$ moult'
    for word; do
        case $word in
        *\'*) printf ' "%s"' "$word" ;;
        *[!A-Za-z0-9_./:=-]*) printf " '%s'" "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    echo
    ended=0
    printed=$("$moult" "$@" 2>&1) || ended=$?
    printf '%s\n' "$printed"
    case $(printf '%s' "$printed" | sed "s/$escape\[[0-9;]*m//g") in
    *"$text"*) [ "$ended" != "$status" ] || return 0 ;;
    esac
    echo "$0: expected exit status $status and the text \"$text\"; the exit status was $ended" >&2
    exit 1
}

# The last line of a walkthrough.
finish() {
    [ -z "${KEEP:-}" ] || title "Kept: $scratch"
    exit 0
}
