#!/usr/bin/env python3
"""picture.py TITLE < run.txt > run.svg: a terminal run as an SVG. Nothing is made up: it draws the lines it is given."""

import html
import re
import sys

COLUMNS, LINE, CHAR, PAD, TOP = 118, 18, 7.85, 16, 44
STYLES = {"0": "", "1": "font-weight:bold;fill:#ffffff", "31": "fill:#ff7b72", "32": "fill:#7ee787", "33": "fill:#e3b341"}


def spans(line: str) -> str:
    out, style = [], ""
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b["):
            style = STYLES.get(part[2:-1].split(";")[-1] or "0", "")
        elif part:
            text = html.escape(part, quote=False)
            if not style and "MERGE_OK" in part:
                style_now = STYLES["32"]
            elif not style and "MERGE_BLOCKED" in part:
                style_now = STYLES["31"]
            else:
                style_now = style
            out.append(f'<tspan style="{style_now}">{text}</tspan>' if style_now else text)
    return "".join(out)


def main() -> None:
    lines = []
    for raw in sys.stdin.read().expandtabs().splitlines():
        plain = re.sub(r"\x1b\[[0-9;]*m", "", raw)
        lines.append(raw if len(plain) <= COLUMNS else plain[: COLUMNS - 1] + "…")
    width, height = round(COLUMNS * CHAR + 2 * PAD), TOP + LINE * len(lines) + PAD
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">')
    print(f"<title>{html.escape(sys.argv[1])}</title>")
    print(f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>')
    for n, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f")):
        print(f'<circle cx="{20 + 20 * n}" cy="20" r="6" fill="{colour}"/>')
    print('<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="13" fill="#c9d1d9" xml:space="preserve">')
    for n, line in enumerate(lines):
        print(f'<text x="{PAD}" y="{TOP + LINE * n + 4}">{spans(line)}</text>')
    print("</g></svg>")


main()
