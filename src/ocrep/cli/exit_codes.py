"""The exit codes, in one table for the program, its help and its documentation."""

from __future__ import annotations

FINE, INTERNAL, USAGE, DATA, MODEL, OUTPUT, INTERRUPTED, PIPE = 0, 1, 2, 3, 4, 5, 130, 141

MEANING = {
    FINE: "success",
    INTERNAL: "an error in ocrep itself, or a library is not installed",
    USAGE: "wrong usage",
    DATA: "the data cannot be used",
    MODEL: "the model file cannot be used",
    OUTPUT: "the output cannot be written",
    INTERRUPTED: "interrupted",
}
EPILOG = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in MEANING.items()) + "."
