"""The commands of the program, as functions whose signatures typer turns into options."""
