"""Results of `highwater.functions`: their data, and how notebooks show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reports.document.blocks import Line, Table
from reports.document.page import blocks_as_html
from reports.evidence import shrunk_run
from reports.evidence.story import head
from reports.formatting import moment, percent, seconds, side
from sim.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reports.analysis.compare import Comparison
    from reports.document.blocks import Block
    from reports.evidence.narrative import Sentence
    from scenarios.shrinking import shrink
    from scenarios.shrinking.case import Case
    from scenarios.shrinking.necessity import Necessity
    from scenarios.shrinking.no_return import Curve
    from scenarios.shrinking.prevention import Remedy
    from scenarios.single.result import RunResult


FIGURES: Final = ("kind", "k", "n", "rate", "low", "high", "inside", "outside")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A run as a picture: the text of a self-contained SVG file."""

    svg: str

    def save(self, file: Path | str) -> None:
        """Write the picture to a file; raise UserError if that fails."""
        from pathlib import Path

        from reports import starts
        from scenarios import own_files

        starts.check_suffix("file", Path(file), starts.PICTURE)
        own_files.write(Path(file), self.svg, starts.PICTURE)

    def __repr__(self) -> str:
        return f"Drawing({len(self.svg):,} characters of SVG)"

    def _repr_svg_(self) -> str:
        return self.svg


@dataclass(frozen=True, slots=True)
class Run:
    """A run: `row` is the row that a sweep would store, `result` holds everything, including the trace."""

    case: Case
    result: RunResult

    def __repr__(self) -> str:
        """The outcome: the trace has thousands of characters."""
        return f"Run({next(iter(head(self.row)))})"

    @property
    def row(self) -> dict[str, Any]:
        """The row that a sweep stores."""
        return self.result.row

    @property
    def violations(self) -> list[dict[str, Any]]:
        """Violations: kind, time, whether inside the promise, and detail."""
        return [dict(violation) for violation in self.result.violations]

    @property
    def trace(self) -> list[dict[str, Any]]:
        """The steps of the protocol, in order."""
        return [dict(step) for step in self.result.trace or ()]

    def blocks(self) -> Iterator[Block]:
        """The outcome, and the violations."""
        yield from map(Line, head(self.row))
        found = [
            (violation["kind"], side(violation["inside"]), seconds(violation["at_us"]), violation["detail"])
            for violation in self.violations
        ]
        if found:
            yield Table(["kind", "promise", "at", "detail"], found)

    def _repr_html_(self) -> str:
        return blocks_as_html(self.blocks())


@dataclass(frozen=True, slots=True)
class Swept:
    """A sweep's folder, and its summary."""

    folder: str
    summary: dict[str, Any]

    def __repr__(self) -> str:
        """One line: the summary has thousands of characters."""
        count = self.summary["runs"]
        runs = f"{count:,} {'run' if count == 1 else 'runs'}"
        modes = dict.fromkeys(one["mode"] for one in self.summary["results"])
        violations = sum(one["verdicts"]["violation"] for one in self.summary["results"])
        return f"Swept({self.folder!r}: {runs} in {', '.join(modes)}; {violations:,} violate)"

    def _repr_html_(self) -> str:
        rows = [
            (one["scenario"], one["mode"], one["runs"], one["verdicts"]["violation"], percent(one["inside_share"]))
            for one in self.summary["results"]
        ]
        return blocks_as_html([Table(["scenario", "mode", "runs", "violations", "tolerated"], rows)])


@dataclass(frozen=True, slots=True)
class Comparisons:
    """The comparisons of a sweep.

    Attributes:
        parts: one comparison for each scenario and combination of the coordinates that are not compared.
        said: the result of each in a sentence.
    """

    parts: tuple[Comparison, ...]
    said: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Comparisons({' '.join(self.said)})"

    def rates(self) -> list[dict[str, Any]]:
        """All rates, one dictionary each, ready for a data frame or plot."""
        return [
            {
                "scenario": part.scenario,
                **part.fixed,
                part.by: group.name,
                **{name: getattr(rate, name) for name in FIGURES},
            }
            for part in self.parts
            for group in part.groups
            for rate in group.rates
        ]

    def plots(self, *, inside: bool = True) -> list[Drawing]:
        """Plot rates with confidence intervals for each part that has violations on that side of the promise."""
        from reports.analysis.sentences import in_order
        from reports.page import plots

        drawn = []
        for part in self.parts:
            groups = in_order(part)
            kinds = [
                rate.kind
                for place, rate in enumerate(groups[0].rates)
                if rate.kind != "any"
                and any((group.rates[place].inside if inside else group.rates[place].outside) for group in groups)
            ]
            if kinds:
                drawn.append(Drawing(plots.alone(plots.rates(groups, kinds, inside=inside))))
        return drawn

    def blocks(self) -> Iterator[Block]:
        """Each comparison's answer, and the rates."""
        from reports.analysis.sentences import RATE, in_order, rate_cells

        for part, said in zip(self.parts, self.said, strict=True):
            rows = [(group.name, rate.kind, *rate_cells(rate)) for group in in_order(part) for rate in group.rates]
            yield from (Line(said), Table([part.by, "kind", *RATE], rows, RATE))

    def _repr_html_(self) -> str:
        return blocks_as_html(self.blocks())


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A shrunk failure; `run` is the smallest run found."""

    found: shrink.ShrunkCase
    run: Run

    def __repr__(self) -> str:
        return f"Shrunk({self.said})"

    @property
    def cause(self) -> list[str]:
        """Repairs that each cure the failure alone."""
        return [str(repair) for repair in self.found.cause]

    @property
    def said(self) -> str:
        """How much smaller the run has become, and what cures it."""
        return f"{shrunk_run.sizes(self.found)}. {shrunk_run.cause(self.found)}"

    def _repr_html_(self) -> str:
        return blocks_as_html([Line(self.said), *self.run.blocks()])


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a failed run.

    Attributes:
        shrunk: the shrunk run, which the other attributes describe.
        story: what happened, in sentences.
        remedies: changes that were tried in order to prevent the violation.
        curve: how likely the violation was at each time; shows the point of no return.
        necessary: faults, batches and messages without which the violation does not occur.
    """

    shrunk: Shrunk
    story: tuple[Sentence, ...]
    remedies: tuple[Remedy, ...]
    curve: Curve
    necessary: Necessity

    def __repr__(self) -> str:
        return f"Explanation({counted(len(self.story), 'sentence')} of {self.shrunk!r})"

    def blocks(self) -> Iterator[Block]:
        """The story, what is necessary for the violation, when it became likely, and what would have prevented it."""
        from reports.drawing import explanation_text

        yield Line(self.shrunk.said)
        yield Table(["at", "what happened"], [(moment(sentence.at_us), sentence.text) for sentence in self.story])
        takes, hidden = explanation_text.rows(self.necessary, explanation_text.MOST)
        yield Table(["at", "necessary", ""], takes)
        yield from map(Line, explanation_text.tried(self.necessary, hidden))
        yield from map(Line, explanation_text.turn(self.curve, self.shrunk.found.symptom.kind))
        yield Table(explanation_text.SHARES, explanation_text.shares(self.curve))
        kept = [remedy.told for remedy in self.remedies if remedy.keeps and remedy.decides]
        header = ["what would have prevented it", "change", "what to do"]
        yield Table(header, kept) if kept else Line("No single change prevents it.")

    def _repr_html_(self) -> str:
        return blocks_as_html(self.blocks())
