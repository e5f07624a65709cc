#!/bin/sh
# Installs moult from this directory; no compiler is needed.
#   sh install.sh [PREFIX]            PREFIX is /usr/local by default
#   sh install.sh --remove [PREFIX]   removes these files again, and no database
set -eu
umask 022
remove=
[ "${1:-}" != --remove ] || { remove=yes; shift; }
case ${1:-/usr/local} in
    -*) sed -n 3,4p "$0" >&2; exit 64 ;;
    /*) prefix=${1:-/usr/local} ;;
    *) prefix=$PWD/$1 ;;
esac
script=$(realpath "$0")
cd "$(dirname "$script")"
[ -n "$remove" ] || mkdir -p "$prefix" 2>/dev/null || true
[ -w "$prefix" ] || {
    echo "install.sh: cannot write to $prefix. Run the command as root, or name another directory: sh $script ~/.local" >&2
    exit 1
}

escaped=$(printf %s "$prefix" | sed 's/[&|\\]/\\&/g')
find bin lib libexec share ! -type d | while read -r file; do
    if [ -n "$remove" ]; then
        rm -f "$prefix/$file"
        rmdir -p "$prefix/${file%/*}" 2>/dev/null || true
        continue
    fi
    mkdir -p "$prefix/${file%/*}"
    cp -P "$file" "$prefix/$file.new"
    # The units name the command with its path.
    case $file in *.service | */metrics.conf) sed "s|/usr/local/bin/|$escaped/bin/|" "$file" > "$prefix/$file.new" ;; esac
    mv -f "$prefix/$file.new" "$prefix/$file"
done
[ -z "$remove" ] || { echo "moult was removed from $prefix"; exit; }

"$prefix/bin/moult" --version | sed "s|\$| is installed in $escaped/bin|"
case :$PATH: in *":$prefix/bin:"*) ;; *) echo "add it to your path: PATH=$prefix/bin:\$PATH" ;; esac
"$prefix/libexec/moult/moult-fetch" < /dev/null > /dev/null 2>&1 ||
    echo 'to download releases from web servers, also install: apt-get install libcurl4 libstdc++6 ca-certificates'
