//! A small plot: measured points and the line through them, as a picture that a page can show.

use std::fmt::Write as _;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 40.0;
const EDGE: f64 = 16.0;

pub(super) fn svg(name: &str, unit: &str, points: &[(f64, f64)], slope: f64, start: f64) -> String {
    let most = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).fold(0.0, f64::max);
    let (x_most, y_most) = (most(|p| p.0), most(|p| p.1) * 1.15);
    let x = |value: f64| LEFT + value / x_most * (WIDTH - LEFT - EDGE);
    let y = |value: f64| HEIGHT - BOTTOM - value / y_most * (HEIGHT - BOTTOM - EDGE);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#555\">\n<title>A warm score's seconds by {name}</title>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    let _ = writeln!(
        out,
        "<path d=\"M{LEFT} {EDGE}V{0}H{1}\" fill=\"none\" stroke=\"#999\"/>",
        y(0.0),
        WIDTH - EDGE
    );
    for part in [0.0, 0.5, 1.0] {
        let (vx, vy) = (x_most * part, y_most * part);
        let _ = writeln!(
            out,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{vy:.2} s</text>\n<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{vx:.0}</text>",
            LEFT - 6.0,
            y(vy) + 4.0,
            x(vx),
            y(0.0) + 16.0
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{unit}</text>",
        f64::midpoint(LEFT, WIDTH),
        HEIGHT - 6.0
    );
    let _ = writeln!(
        out,
        "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"#2a7\" stroke-dasharray=\"4 3\"/>",
        x(0.0),
        y(start.max(0.0)),
        x(x_most),
        y(start + slope * x_most)
    );
    for (px, py) in points {
        let _ = writeln!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"#15c\"/>",
            x(*px),
            y(*py)
        );
    }
    out.push_str("</svg>\n");
    out
}
