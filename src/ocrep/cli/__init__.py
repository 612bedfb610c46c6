"""The program `ocrep`; importing it needs neither typer nor rich nor numpy."""

from ocrep.cli.running import main

__all__ = ["main"]
