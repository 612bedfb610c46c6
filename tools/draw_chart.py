"""Draw the flow charts of docs/start.md (which estimator, which rule for γ?) and the way of the data through a fit."""

from pathlib import Path
from xml.sax.saxutils import escape

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
WIDTH = 760
QUESTION, ANSWER, INK = "#e8eef5", "#ffffff", "#1f2933"


class Drawing:
    """Boxes of text and arrows between them, as SVG."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def box(self, x: float, y: float, width: float, lines: list[str], *, code: bool = False) -> None:
        """A question, or with `code` an answer; x is the middle and y the top."""
        height = 20 * len(lines) + 14
        fill, family = (ANSWER, "monospace") if code else (QUESTION, "sans-serif")
        self.parts.append(
            f'<rect x="{x - width / 2}" y="{y}" width="{width}" height="{height}" rx="{0 if code else 12}" '
            f'fill="{fill}" stroke="{INK}"/>'
        )
        for k, line in enumerate(lines):
            place = f'x="{x}" y="{y + 21 + 20 * k}"'
            self.parts.append(f'<text {place} font-family="{family}" font-size="14">{escape(line)}</text>')

    def arrow(self, start: tuple[float, float], end: tuple[float, float], label: str = "") -> None:
        """A line with a head, and a word beside its middle."""
        (x1, y1), (x2, y2) = start, end
        self.parts.append(f'<path d="M{x1} {y1}L{x2} {y2}" stroke="{INK}" marker-end="url(#head)"/>')
        if label:
            place = f'x="{(x1 + x2) / 2}" y="{(y1 + y2) / 2 + 4}" font-family="sans-serif" font-size="13"'
            halo = 'stroke="#ffffff" stroke-width="6" paint-order="stroke"'
            self.parts.append(f"<text {place} {halo}>{escape(label)}</text>")

    def note(self, x: float, y: float, text: str) -> None:
        """Small text without a box; x is the middle and y the baseline."""
        self.parts.append(f'<text x="{x}" y="{y}" font-family="sans-serif" font-size="11.5">{escape(text)}</text>')

    def svg(self, height: int) -> str:
        """The whole picture, on white so that it can be read in the dark too."""
        head = (
            '<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0L10 5L0 10z" fill="{INK}"/></marker>'
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
            f'<defs>{head}</defs><rect width="100%" height="100%" fill="#ffffff"/>'
            f'<g text-anchor="middle" fill="{INK}">{"".join(self.parts)}</g></svg>\n'
        )


def estimators() -> str:
    """Which estimator?"""
    draw = Drawing()
    draw.box(380, 10, 330, ["What do the columns hold?"])
    draw.arrow((300, 44), (200, 98), "measurements")
    draw.arrow((470, 44), (590, 98), "features you made")
    draw.box(200, 100, 300, ["Can the rows be read more than once,", "and may it take some seconds?"])
    draw.box(590, 100, 260, ["TikhonovRegressor", "TikhonovClassifier"], code=True)
    draw.arrow((150, 154), (120, 208), "yes")
    draw.arrow((260, 154), (360, 208), "no")
    draw.box(120, 210, 200, ["PinvRegressorCV", "PinvClassifierCV"], code=True)
    draw.box(360, 210, 200, ["PinvRegressor", "PinvClassifier"], code=True)
    return draw.svg(280)


def rules() -> str:
    """Which rule for γ?"""
    draw = Drawing()
    draw.box(380, 10, 440, ["Do rows belong together: patients, machines, time?"])
    draw.arrow((300, 44), (240, 98), "no")
    draw.arrow((480, 44), (575, 98), "yes")
    draw.box(215, 100, 270, ["Is the noise of the targets known?"])
    draw.box(575, 100, 330, ['rules.KFold(split="groups")', 'rules.KFold(split="blocks")'], code=True)
    draw.arrow((170, 134), (140, 188), "no")
    draw.arrow((280, 134), (470, 188), "yes")
    draw.box(140, 190, 210, ["Fewer than 100 rows?"])
    draw.box(500, 190, 300, ["rules.Discrepancy(noise=...)"], code=True)
    draw.arrow((110, 224), (75, 278), "yes")
    draw.arrow((180, 224), (215, 278), "no")
    draw.box(70, 280, 100, ['"loo"'], code=True)
    draw.box(220, 280, 140, ["the default"], code=True)
    return draw.svg(330)


def fit() -> str:
    """What happens to the rows in one fit."""
    draw = Drawing()
    steps = [
        ("rows", "_rows", ["arrays, files, streams, Dask:", "checked, and given in blocks"]),
        ("survey", "_rows", ["ranges, labels, groups, a sample:", "surveys of parts merge"]),
        ("layer and targets", "_layers, _training", ["the hidden layer is drawn,", "the targets are coded"]),
        ("encoded blocks", "_training", ["H = φ(XC + b), T, weights:", "one block at a time"]),
        ("factors", "_linalg", ["all rows and each fold:", "factors of parts merge"]),
        ("spectrum", "_linalg", ["σ, V, UᵀT by one SVD", "of a small triangle"]),
        ("γ", "rules", ["a rule reads the spectrum,", "the folds, or the rows again"]),
        ("model", "estimators", ["W and b for this γ,", "stored as fitted attributes"]),
    ]
    width, gap = 175, 16
    for k, (name, room, lines) in enumerate(steps):
        row, column = divmod(k, 4)
        x = 8 + width / 2 + (column if row == 0 else 3 - column) * (width + gap)
        y = 10 + 140 * row
        draw.box(x, y, width, [name, f"({room})"])
        for i, line in enumerate(lines):
            draw.note(x, y + 72 + 17 * i, line)
        if k == 3:
            draw.arrow((x, y + 98), (x, y + 138))
        elif row == 0:
            draw.arrow((x + width / 2, y + 27), (x + width / 2 + gap, y + 27))
        elif k < 7:
            draw.arrow((x - width / 2, y + 27), (x - width / 2 - gap, y + 27))
    return draw.svg(255)


if __name__ == "__main__":
    for name, draw in {"which_estimator": estimators, "which_rule": rules, "one_fit": fit}.items():
        (IMAGES / f"{name}.svg").write_text(draw(), encoding="utf-8")
