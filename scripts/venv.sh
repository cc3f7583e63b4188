# Sourced by demo.sh and test.sh: makes the virtual environment from constraints.txt when it is missing or was made
# from another constraints.txt, and puts it first on PATH. DARE_VENV chooses another place ("active": use what is on
# PATH already), PYTHON another interpreter.
VENV="${DARE_VENV:-.venv}"
if [ "$VENV" != active ]; then
    wanted="$(cksum < constraints.txt)"
    if [ "$(cat "$VENV/.installed" 2>/dev/null || true)" != "$wanted" ]; then
        "${PYTHON:-python3}" -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 13) else
"Python 3.11 or 3.12 is needed, this is %d.%d: set PYTHON=/path/to/python3.11" % v)'
        echo "Installing the tested set of packages into $VENV (two to four minutes) ..."
        "${PYTHON:-python3}" -m venv --clear "$VENV"
        "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check -r constraints.txt
        "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --editable .
        "$VENV/bin/python" -m pip check
        printf '%s' "$wanted" > "$VENV/.installed"
    fi
    VENV="$(cd "$VENV" && pwd)"
    export PATH="$VENV/bin:$PATH"
fi
