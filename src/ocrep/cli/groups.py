"""The groups of options that several commands share: the table, the file, the network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from typer import BadParameter, Option

from ocrep.cli.options import complete_gamma, gamma_of, n_hidden_of

Activation = Literal["sigmoid", "tanh", "relu", "sin", "gaussian", "hardlimit", "identity"]
WeightInit = Literal["uniform", "normal", "orthogonal", "pairs", "rows"]


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What is learned from which columns and rows."""

    panel: ClassVar[str] = "Table"

    target: Annotated[str, Option("--target", "-t", metavar="COLUMN", help="The column to learn.")]
    task: Annotated[
        Literal["auto", "regression", "classification"],
        Option("--task", help="auto guesses from the target, and prints the guess."),
    ] = "auto"
    drop_missing_target: Annotated[
        bool, Option("--drop-missing-target", help="Leave out rows without a target; otherwise they are an error.")
    ] = False
    ignore: Annotated[
        list[str] | None, Option("--ignore", metavar="COLUMN", help="A column that is not an input; may be repeated.")
    ] = None
    dates: Annotated[
        Literal["parts", "drop"],
        Option("--dates", help="parts: year, month, day of week and age in days become inputs; drop leaves them out."),
    ] = "parts"

    def read(self, data: Any, file: FileOptions, **more: Any) -> Any:
        """The problem that a file poses."""
        from ocrep.tables.problem import read_problem

        more |= {"ignore": self.ignore or (), "drop_missing_target": self.drop_missing_target, "dates": self.dates}
        return read_problem(data, self.target, task=self.task, reading=file.reading(), **more)


@dataclass(frozen=True, slots=True)
class FileOptions:
    """How a text file is written."""

    panel: ClassVar[str] = "How the file is written"

    decimal: Annotated[str | None, Option("--decimal", metavar="MARK", help="The decimal mark, such as a comma.")] = (
        None
    )
    thousands: Annotated[
        str | None, Option("--thousands", metavar="MARK", help="The mark between thousands, as in 26,313.93.")
    ] = None
    strip: Annotated[
        str | None, Option("--strip", metavar="SIGNS", help="Signs that are taken off numbers, such as '$%'.")
    ] = None
    na: Annotated[
        list[str] | None,
        Option("--na", metavar="WORD", help="A word that stands for a missing value; may be repeated."),
    ] = None
    encoding: Annotated[
        str | None, Option("--encoding", metavar="NAME", help="The encoding, such as latin-1; UTF-8 by default.")
    ] = None
    delimiter: Annotated[
        str | None,
        Option("--delimiter", metavar="MARK", help="What stands between values; a character, or tab."),
    ] = None

    def given(self) -> dict[str, Any]:
        """The options that were given, by the names of `Reading`; raises if they cannot be."""
        from ocrep._files.reading import Reading

        delimiter = {"tab": "\t", "\\t": "\t"}.get(self.delimiter or "", self.delimiter)
        same = ("decimal", "thousands", "strip", "encoding")
        values: dict[str, Any] = {name: getattr(self, name) for name in same}
        values |= {"na": None if self.na is None else tuple(self.na), "delimiter": delimiter}
        found = {name: value for name, value in values.items() if value is not None}
        try:
            Reading(**found)
        except ValueError as error:
            raise BadParameter(f"--{error}") from None
        return found

    def reading(self) -> Any:
        """The reading that the options describe."""
        from ocrep._files.reading import Reading

        return Reading(**self.given())


_HOW_GAMMA = "How γ is chosen: ocrep, ocrep_cv, kfold, gcv, none, … or a number ≥ 0."


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """One network."""

    panel: ClassVar[str] = "One network"

    n_hidden: Annotated[
        str | None, Option("--n-hidden", metavar="NUMBER|auto", help="Hidden units; auto chooses their number.")
    ] = None
    max_hidden: Annotated[
        int | None, Option("--max-hidden", min=1, help="The most units that auto considers; 300 by default.")
    ] = None
    gamma: Annotated[
        str | None, Option("--gamma", metavar="RULE|NUMBER", autocompletion=complete_gamma, help=_HOW_GAMMA)
    ] = None
    floor: Annotated[
        str | None,
        Option("--floor", metavar="NUMBER|precision|rounding", help="The least γ of a rule, in units of σ₁²."),
    ] = None
    activation: Annotated[Activation | None, Option("--activation", help="Of the hidden units.")] = None
    weight_init: Annotated[
        WeightInit | None, Option("--weight-init", help="Where the weights of the hidden units come from.")
    ] = None
    weight_scale: Annotated[
        str | None, Option("--weight-scale", metavar="NUMBER|inverse_sqrt", help="Factor on these weights.")
    ] = None
    direct_link: Annotated[
        bool | None, Option("--direct-link/--no-direct-link", help="Whether the output sees the inputs too.")
    ] = None
    intercept: Annotated[bool | None, Option("--intercept/--no-intercept", help="Whether it has a constant.")] = None

    def chosen(self) -> dict[str, Any]:
        """The options as `Settings` takes them."""
        layer = {name: getattr(self, name) for name in ("max_hidden", "activation", "weight_init", "direct_link")}
        layer["weight_scale"] = _scale_of(self.weight_scale)
        return {
            "n_hidden": n_hidden_of(self.n_hidden),
            "gamma": _with_floor(gamma_of(self.gamma), self.floor),
            "intercept": self.intercept,
            "layer": {name: value for name, value in layer.items() if value is not None},
        }


def _scale_of(text: str | None) -> float | str | None:
    if text is None or text == "inverse_sqrt":
        return text
    try:
        return float(text)
    except ValueError:
        raise BadParameter(f"{text!r} must be a number, or inverse_sqrt.", param_hint="--weight-scale") from None


def _with_floor(gamma: Any, floor: str | None) -> Any:
    """A rule with another floor; without a rule, the default one."""
    if floor is None:
        return gamma
    from ocrep import PinvRegressor, rules

    rule = rules.resolve(PinvRegressor().gamma if gamma is None else gamma)
    if not hasattr(rule, "floor"):
        raise BadParameter(f"--gamma {gamma} has no floor: leave --floor out.", param_hint="--floor")
    try:
        value: float | str = float(floor)
    except ValueError:
        value = floor
    try:
        return replace(rule, floor=value)  # type: ignore[type-var]
    except ValueError as error:
        raise BadParameter(str(error), param_hint="--floor") from None
