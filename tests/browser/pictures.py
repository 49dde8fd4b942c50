"""Pictures of the page at 1280 and 400 pixels, light and dark, few colours and small.

pictures.py DRIVER BROWSER URL FOLDER NAME=PATH..., the token on standard input. Pillow makes them small, where it is.
"""

import io
import pathlib
import sys

from driver import opened, sign_in

SIZES = ((1280, 860), (400, 780))


def small(picture: bytes) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    few = image.quantize(colors=96, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(out, "PNG", optimize=True)
    return out.getvalue()


def main() -> None:
    driver, browser, url, folder, *views = sys.argv[1:]
    token = sys.stdin.readline().strip()
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    with opened(driver, browser) as window:
        sign_in(window, url, token)
        for view in views:
            name, _, path = view.partition("=")
            for width, height in SIZES:
                for scheme in ("light", "dark"):
                    # A score's page goes on below: what its grid looks like belongs on its picture.
                    window.screen(width, height * 2 if name == "blocked" else height, scheme)
                    window.go(url + path)
                    window.until("it is drawn", "return document.readyState === 'complete'")
                    (out / f"{name}-{width}-{scheme}.png").write_bytes(small(window.picture()))


if __name__ == "__main__":
    main()
