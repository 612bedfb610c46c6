"""`python -m ocrep.study quick|full --out FOLDER [--jobs N]`, or `python -m ocrep.study report FOLDER`."""

from __future__ import annotations

import argparse
import sys

from ocrep import study


def main() -> None:
    """Run a protocol, or only write the report of a folder, and say where it is."""
    parser = argparse.ArgumentParser(prog="python -m ocrep.study", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in study.PROTOCOLS:
        command = commands.add_parser(name)
        command.add_argument("--out", required=True)
        command.add_argument("--jobs", type=int, default=2)
    commands.add_parser("report").add_argument("out")
    args = parser.parse_args()
    try:
        if args.command != "report":
            study.run(args.command, args.out, n_jobs=args.jobs)
        print(f"The report is in {study.report(args.out)}")
    except (OSError, ValueError, RuntimeError) as reason:
        sys.exit(f"ocrep study: {reason}")


if __name__ == "__main__":
    main()
