"""Outcomes of the ways, compared with plain: what differs, the table, and the rules that must hold."""

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from sources import Library
from ways import Ran

PAGE = Path(__file__).resolve().parents[4] / "docs" / "SPLIT.md"
BEGIN, END = "<!-- libraries: begin -->", "<!-- libraries: end -->"
WHOLE, EACH = 97.0, 85.0  # per cent of the cases that pass plain


@dataclass
class Compared:
    library: Library
    ran: dict[str, Ran]
    mutants: int = 0
    caught: int = 0
    differing: list[str] = field(default_factory=list)  # cases that a mutant makes differ between plain and split

    @property
    def plain(self) -> set[str]:
        return self.ran["plain"].passed() if "plain" in self.ran else set()

    def kept(self, way: str) -> int:
        """Of the cases that pass plain, how many pass this way."""
        return len(self.plain & self.ran[way].passed())

    def lost(self, way: str) -> list[str]:
        return sorted(self.plain - self.ran[way].passed())

    def needing(self, way: str = "split") -> dict[str, int]:
        """The files that have to be shared, as `tribunal modes` finds them: with a case that is lost, and how many are."""
        return dict(sorted(Counter(node.split("::", 1)[0] for node in self.lost(way)).items()))

    def gained(self, way: str) -> list[str]:
        """Cases that fail plain and pass this way: a hidden failure."""
        plain = self.ran["plain"].outcomes
        return sorted(node for node in self.ran[way].passed() if plain.get(node) == "failed")

    def text(self) -> str:
        lines = [f"== {self.library.title}: {len(self.library.tests())} files"]
        for way, ran in self.ran.items():
            counts = ", ".join(f"{count} {word}" for word, count in sorted(Counter(ran.outcomes.values()).items()))
            lines.append(f"   {way:7} {counts or 'no case'}"
                         + (f"; {len(ran.errors)} files not collected" if ran.errors else "")
                         + (f"; {ran.end}" if ran.end != "finished" else "")
                         + (f"; {len(ran.tamper)} tampers" if ran.tamper else ""))  # fmt: skip
        if "plain" not in self.ran:
            return "\n".join(lines)
        for way in [way for way in self.ran if way != "plain"]:
            lost, ran = self.lost(way), self.ran[way]
            for reason, nodes in grouped(lost, ran):
                lines.append(f"   {way}: {len(nodes)} lost: {reason}")
                lines += [f"      {node[:200]}" for node in nodes[:3]]
            lines += [f"   {way}: HIDES the failure of {node[:200]}" for node in self.gained(way)]
            lines += [f"   {way}: tamper: {each[:300]}" for each in sorted(set(ran.tamper))[:5]]
        return "\n".join(lines)


def grouped(nodes: list[str], ran: Ran) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for node in nodes:
        found.setdefault(re.sub(r"0x[0-9a-f]+|\d+", "N", ran.why(node)), []).append(node)
    return sorted(((ran.why(nodes[0]), nodes) for nodes in found.values()), key=lambda each: -len(each[1]))


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def columns(told: list[Compared]) -> list[str]:
    return [
        way for way in ("local-shared", "shared", "local", "split", "modes") if any(way in each.ran for each in told)
    ]


def markdown(told: list[Compared]) -> str:
    """One line a library."""
    told = [each for each in told if "plain" in each.ran]
    extra = columns(told)
    head = ["library", "files", "cases", "pass plain", *(f"of them {way}" for way in extra)]
    head += ["shared files", "mutants, caught, differ"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for each in told:
        row = [
            each.library.title,
            str(len(each.library.tests())),
            str(len(each.ran["plain"].outcomes)),
            str(len(each.plain)),
        ]
        row += [counted(each.kept(way), len(each.plain)) if way in each.ran else "" for way in extra]
        row.append(str(len(each.library.shared)))
        row.append(f"{each.mutants}, {each.caught}, {len(each.differing)}" if each.mutants else "")
        lines.append("| " + " | ".join(row) + " |")
    whole = sum(len(each.plain) for each in told)
    total = [f"all {len(told)}", str(sum(len(each.library.tests()) for each in told)),
             str(sum(len(each.ran["plain"].outcomes) for each in told)), str(whole)]  # fmt: skip
    total += [counted(sum(each.kept(way) for each in told if way in each.ran),
                      sum(len(each.plain) for each in told if way in each.ran)) for way in extra]  # fmt: skip
    planted = sum(each.mutants for each in told)
    counts = [planted, sum(each.caught for each in told), sum(len(each.differing) for each in told)]
    total += [str(sum(len(each.library.shared) for each in told)), ", ".join(map(str, counts)) if planted else ""]
    lines.append("| " + " | ".join(total) + " |")
    lines += ["", "| runs shared | cases lost when split | because of |", "| --- | --- | --- |"]
    for each in told:
        lost = each.needing() if "split" in each.ran else {}
        lines += [
            f"| {each.library.name}: `{file}` | {lost.get(file, '')} | {why} |"
            for file, why in each.library.shared.items()
        ]
    return "\n".join(lines)


def counted(part: int, whole: int) -> str:
    return f"{part} ({share(part, whole)})"


def broken(told: list[Compared]) -> list[str]:
    """The rules: enough of what passes plain passes split, nothing is hidden or called tampering, and modes gives plain's."""
    lines = []
    for way in ("split", "local"):
        each_way = [each for each in told if way in each.ran and each.plain]
        kept, whole = sum(each.kept(way) for each in each_way), sum(len(each.plain) for each in each_way)
        if whole and 100 * kept / whole < WHOLE:
            lines.append(f"{way}: {share(kept, whole)} on the whole")
        lines += [
            f"{way}: {each.library.name} {share(each.kept(way), len(each.plain))}"
            for each in each_way
            if 100 * each.kept(way) / len(each.plain) < EACH
        ]
        lines += [f"{way}: {node} fails plain and passes" for each in each_way for node in each.gained(way)]
        lines += [f"{way}: tamper in {each.library.name}" for each in each_way if each.ran[way].tamper]
    for each in told:
        if "split" in each.ran:
            lines += [
                f"split: {each.library.name} {file} is not in table.toml"
                for file in each.needing()
                if file not in each.library.shared
            ]
        lines += [f"mutant: {each.library.name} {line}" for line in each.differing]
        if "modes" in each.ran:
            lines += [f"modes: {node} does not pass" for node in each.lost("modes")]
            lines += [f"modes: {node} fails plain and passes" for node in each.gained("modes")]
    return lines


def write(told: list[Compared]) -> None:
    """The table between the markers of the page."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{PAGE.name} has no place for the table ({BEGIN} … {END})")
    PAGE.write_text(f"{before}{BEGIN}\n{markdown(told)}\n{END}{after}")
