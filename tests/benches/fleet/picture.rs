//! How the time grows with the number of BMCs, as SVG: two log-log panels, readable on light and on dark ground.

use std::fmt::Write;
use std::time::Duration;

use crate::crowd::Raced;
use crate::race::contest::{Deed, median};
use crate::race::floor::Floor;
use crate::race::ours::Start;
use crate::race::powerman::{IPMIPOWER, POWERMAN};

/// Of the whole picture, in pixels.
const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 430.0;
/// Of one panel: its plot's left edge within it, its top, its size.
const PANEL: f64 = WIDTH / 2.0;
const LEFT: f64 = 62.0;
const TOP: f64 = 56.0;
const ACROSS: f64 = 250.0;
const DOWN: f64 = 300.0;
/// Labels of series stand at least so far apart.
const LINE: f64 = 15.0;

/// A series: who, its label, and the class of its line.
fn series() -> [(&'static str, &'static str, &'static str); 6] {
    [
        (POWERMAN, "powerman, resident", "e"),
        (IPMIPOWER, "ipmipower", "d"),
        (Start::ColdAndClosed.name(), "Picket, cold", "a"),
        (Floor::COLD, "floor, cold", "c"),
        (Start::Warm.name(), "Picket, warm", "b"),
        (Floor::WARM, "floor, warm", "f"),
    ]
}

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#1f2328}.h{font-size:14px;font-weight:600}.s{fill:#59636e}
.t{fill:currentColor}path,circle{fill:none;stroke:currentColor;stroke-width:2}
line{stroke:#d1d9e0;stroke-width:1}path.c,path.f{stroke-dasharray:5 4}
.a{color:#0550ae}.b{color:#1a7f37}.c,.f{color:#6e7781}.d{color:#bc4c00}.e{color:#8250df}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9198a1}.t{fill:currentColor}line{stroke:#3d444d}
.a{color:#79c0ff}.b{color:#56d364}.c,.f{color:#9198a1}.d{color:#ffa657}.e{color:#d2a8ff}}";

/// An axis of powers of ten.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn over(values: &[f64]) -> Self {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { low: least.log10().floor(), high: most.log10().ceil().max(least.log10().floor() + 1.0) }
    }

    /// From 0 to 1.
    fn at(&self, value: f64) -> f64 {
        (value.log10() - self.low) / (self.high - self.low)
    }

    fn powers(&self) -> impl Iterator<Item = i32> {
        self.low as i32..=self.high as i32
    }
}

/// A time, in words.
fn time(power: i32) -> String {
    match power {
        ..0 => format!("{} µs", 10_f64.powi(power + 3)),
        0..3 => format!("{} ms", 10_i64.pow(power.unsigned_abs())),
        _ => format!("{} s", 10_i64.pow(power.unsigned_abs() - 3)),
    }
}

/// The picture of these races.
pub fn draw(raced: &[Raced]) -> String {
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let points = |name: &str, deed: Deed| -> Vec<(f64, f64)> {
        let of = raced.iter().filter(|raced| raced.deed == deed);
        of.filter_map(|raced| Some((raced.bmcs as f64, millis(median(&raced.scores, name)?)))).collect()
    };
    let all: Vec<(f64, f64)> = series()
        .iter()
        .flat_map(|(name, ..)| [points(name, Deed::Status), points(name, Deed::Off)].concat())
        .collect();
    let across = Axis::over(&all.iter().map(|(bmcs, _)| *bmcs).collect::<Vec<_>>());
    let down = Axis::over(&all.iter().map(|(_, time)| *time).collect::<Vec<_>>());
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"How the time grows with the number of BMCs\">\n<style>{STYLE}</style>\n"
    );
    for (index, (deed, title)) in
        [(Deed::Status, "Status of all"), (Deed::Off, "Off of all, each confirmed")].into_iter().enumerate()
    {
        let left = index as f64 * PANEL + LEFT;
        panel(&mut svg, left, title, (&across, &down));
        let mut ends: Vec<(f64, &str, &str)> = Vec::new();
        for (name, label, class) in series() {
            let mut line = String::new();
            let mut last = None;
            for (bmcs, time) in points(name, deed) {
                let (x, y) = (left + ACROSS * across.at(bmcs), TOP + DOWN * (1.0 - down.at(time)));
                let _ = write!(line, "{}{x:.1} {y:.1}", if line.is_empty() { "M" } else { "L" });
                let _ = writeln!(svg, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"/>");
                last = Some(y);
            }
            let _ = writeln!(svg, "<path class=\"{class}\" d=\"{line}\"/>");
            ends.extend(last.map(|y| (y, label, class)));
        }
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = TOP;
        for (y, label, class) in ends {
            let at = y.max(free);
            free = at + LINE;
            let x = left + ACROSS + 8.0;
            let _ =
                writeln!(svg, "<text class=\"t {class}\" x=\"{x:.1}\" y=\"{:.1}\">{label}</text>", at + 4.0);
        }
    }
    svg + "</svg>\n"
}

/// Its title, grid and axes.
fn panel(svg: &mut String, left: f64, title: &str, (across, down): (&Axis, &Axis)) {
    let bottom = TOP + DOWN;
    let _ = writeln!(svg, "<text class=\"h\" x=\"{left}\" y=\"24\">{title}</text>");
    let _ = writeln!(svg, "<text class=\"s\" x=\"{left}\" y=\"42\">until the last is done, median</text>");
    for power in down.powers() {
        let y = TOP + DOWN * (1.0 - down.at(10_f64.powi(power)));
        let _ =
            writeln!(svg, "<line x1=\"{left}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>", left + ACROSS);
        let _ = writeln!(
            svg,
            "<text class=\"s\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 6.0,
            y + 4.0,
            time(power)
        );
    }
    for power in across.powers() {
        let x = left + ACROSS * across.at(10_f64.powi(power));
        let _ = writeln!(svg, "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>");
        let _ = writeln!(
            svg,
            "<text class=\"s\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            bottom + 18.0,
            10_i64.pow(power.unsigned_abs())
        );
    }
    let middle = left + ACROSS / 2.0;
    let _ = writeln!(
        svg,
        "<text class=\"s\" x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">BMCs</text>",
        bottom + 38.0
    );
}
