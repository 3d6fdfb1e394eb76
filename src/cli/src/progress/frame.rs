//! The lines of live progress: one for each node that is followed, with a head and a sum.

use std::time::Duration;

use picket_proto::v1::{FenceUntil, FenceUpdate, Phase, Power};
use tokio::time::Instant;

use crate::duration;
use crate::exit::Exit;
use crate::motion::{FollowedNode, Motion, NodeProgress};
use crate::style::{Page, Tone, clean, clip};
use crate::view::{ending, report, update, words};

/// A terminal with fewer columns goes without the time since a node was asked for: what is left of it matters more.
const NARROW: usize = 72;

/// One node, cell by cell.
struct Row {
    rank: u8,
    cells: [String; 4],
    tone: Tone,
    now: String,
}

/// The lines, no more than `height`, none wider than `width`.
pub fn frame(lines: &[NodeProgress], at: Instant, width: usize, height: usize, page: Page) -> Vec<String> {
    let shown = |line: &&NodeProgress| line.followed.is_none() || line.motion.proves();
    let all: Vec<&NodeProgress> = lines.iter().filter(shown).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let mut rows: Vec<Row> = all.iter().map(|line| row(line, at)).collect();
    let room = height.saturating_sub(2).max(1);
    let left = rows.len().saturating_sub(room);
    if left > 0 {
        // Those under way and those that failed are looked for; the sum has the others.
        rows.sort_by_key(|row| row.rank);
        rows.truncate(room);
    }
    let heads = ["NODE", "STATE", "TIME", "LIMIT"];
    let columns: Vec<usize> = if width < NARROW { vec![0, 1, 3] } else { vec![0, 1, 2, 3] };
    let widest = |column: usize| {
        let cells = rows.iter().map(|row| row.cells.get(column).map_or(0, |cell| cell.chars().count()));
        cells.chain([heads.get(column).map_or(0, |head| head.len())]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = columns.iter().map(|column| widest(*column)).collect();
    let used: usize = widths.iter().map(|width| width + 2).sum();
    let line = |cells: &[String], tone: Tone, now: &str| {
        let padded = columns.iter().zip(&widths).map(|(column, width)| {
            let cell = cells.get(*column).map(String::as_str).unwrap_or_default();
            let padded = format!("{cell:<width$}  ");
            if *column == 1 { page.tone(tone, &padded) } else { padded }
        });
        let text = padded.collect::<String>() + &clip(now, width.saturating_sub(used));
        text.trim_end().to_owned()
    };
    let heads = heads.map(str::to_owned);
    let mut out = vec![page.tone(Tone::Faint, &line(&heads, Tone::Plain, "NOW"))];
    out.extend(rows.iter().map(|row| line(&row.cells, row.tone, &row.now)));
    out.push(page.tone(Tone::Faint, &clip(&sum(lines, left), width)));
    // A window that is narrower than the names of nodes: what does not fit is cut, since a line that wraps would be left standing.
    out.into_iter().map(|line| if used > width { clip(&line, width) } else { line }).collect()
}

fn row(line: &NodeProgress, at: Instant) -> Row {
    let node = clean(&line.node).into_owned();
    if let Some(followed) = &line.followed {
        let (tone, state) = ending::result(followed);
        let rank = if followed.exit() == Exit::Done { 3 } else { 1 };
        let elapsed = followed.latest.as_ref().and_then(|update| update.elapsed);
        let took = elapsed.map_or(followed.took, |span| duration::of_wire(&span));
        let cells = [node, state, duration::words(took), String::new()];
        return Row { rank, cells, tone, now: ended(followed) };
    }
    let Some(started) = line.started else {
        let cells = [node, "waiting".to_owned(), String::new(), String::new()];
        return Row { rank: 2, cells, tone: Tone::Faint, now: "for its turn in this command".to_owned() };
    };
    let since_asked = at.saturating_duration_since(started);
    let (mut tone, state, elapsed, limit, mut now) = match &line.latest {
        None => (Tone::Faint, "asking".to_owned(), since_asked, String::new(), String::new()),
        Some((message, arrived)) => {
            let since = at.saturating_duration_since(*arrived);
            let elapsed = message.elapsed.map_or(since_asked, |span| duration::of_wire(&span) + since);
            let limit = left(message, since).map(duration::whole).unwrap_or_default();
            (words::phase_tone(message.phase), state(line, message), elapsed, limit, now(line, message))
        }
    };
    if let Some(why) = &line.broken {
        (tone, now) = (Tone::Bad, format!("connection lost ({}), trying again", clean(why)));
    }
    Row { rank: 0, cells: [node, state, duration::words(elapsed), limit], tone, now }
}

/// Until what is waited for must have come.
fn left(message: &FenceUpdate, since: Duration) -> Option<Duration> {
    let until = message.wait.as_ref()?.until.as_ref()?;
    Some(duration::between(message.time.as_ref()?, until).saturating_sub(since))
}

/// What is being done with it, in a word.
fn state(line: &NodeProgress, message: &FenceUpdate) -> String {
    let reads_off = || line.readings.values().any(|reading| reading.power() == Power::Off);
    match message.phase() {
        _ if update::is_queued(message) => "queued".to_owned(),
        Phase::Fencing if reads_off() => "proving".to_owned(),
        Phase::Fencing if is_unsent(message) => "asking".to_owned(),
        Phase::Fencing => "switching".to_owned(),
        Phase::Fenced => "releasing".to_owned(),
        Phase::Unfencing => "coming back".to_owned(),
        _ => words::spoken(words::phase(message.phase)),
    }
}

/// Whether no device has taken an off yet, as far as the gateway says.
fn is_unsent(message: &FenceUpdate) -> bool {
    message.off_sent == Some(false)
}

/// What happened last, what its devices read, and what it waits for; where nothing was taken yet, the wait alone: it has the reason.
fn now(line: &NodeProgress, message: &FenceUpdate) -> String {
    let mut parts = Vec::new();
    if update::is_simulated(message) {
        parts.push("simulated".to_owned());
    }
    // On its way back what was closed last says nothing of what bars the on.
    let tells_all =
        message.phase() == Phase::Unfencing || message.phase() == Phase::Fencing && is_unsent(message);
    let is_told_by_wait = tells_all && message.wait.is_some();
    if message.readings.is_empty() && !message.text.is_empty() && !is_told_by_wait {
        parts.push(words::happened(&message.text).into_owned());
    }
    if message.phase() == Phase::Fencing {
        parts.extend(line.readings.values().map(update::reads));
    }
    if let Some(wait) = &message.wait {
        parts.push(update::waits(wait));
    }
    clean(&parts.join("; ")).into_owned()
}

/// How one ended, while others are under way.
fn ended(followed: &FollowedNode) -> String {
    let (_, volumes) = ending::volumes(followed);
    let text = match followed.exit() {
        Exit::Done if volumes.is_empty() => String::new(),
        Exit::Done => format!("off proven; volumes {volumes}"),
        _ => report::headline(followed).1,
    };
    clean(&text).into_owned()
}

/// How many are done, and that the fences go on without whoever looks. `hidden`: so many have no line of their own.
fn sum(lines: &[NodeProgress], hidden: usize) -> String {
    let ended = |done: bool| {
        let is = |line: &&NodeProgress| {
            line.followed.as_ref().is_some_and(|one| (one.exit() == Exit::Done) == done)
        };
        lines.iter().filter(is).count()
    };
    let motion = lines.first().map(|line| &line.motion);
    let noun = motion.map_or("fence", Motion::noun);
    let good = match motion {
        Some(Motion::Fence(request)) if request.until() == FenceUntil::Confirmed => "proven off",
        Some(Motion::Fence(_) | Motion::Attest(_)) => "released",
        _ => "done",
    };
    if lines.len() == 1 {
        return format!("Ctrl-C leaves; the {noun} goes on");
    }
    let hidden = if hidden > 0 { format!(", {hidden} not shown") } else { String::new() };
    format!(
        "{} of {} {good}, {} failed{hidden}. Ctrl-C leaves; the {noun}s go on",
        ended(true),
        lines.len(),
        ended(false)
    )
}

#[cfg(test)]
mod tests {
    use picket_proto::v1::{DeviceReading, FenceRequest, Outcome, OutcomeKind, Reason, Wait};
    use prost_types::Timestamp;

    use super::*;
    use crate::motion::FollowEnd;

    fn line(node: &str, begun: Option<Instant>) -> NodeProgress {
        let mut line = NodeProgress::new((node.to_owned(), Motion::Fence(FenceRequest::default())));
        line.started = begun;
        line
    }

    fn at(seconds: i64) -> Option<Timestamp> {
        Some(Timestamp { seconds, nanos: 0 })
    }

    fn fencing(arrived: Instant) -> (FenceUpdate, Instant) {
        let update = FenceUpdate {
            time: at(1_000),
            fence_id: "f".to_owned(),
            phase: Phase::Fencing.into(),
            text: "off: bmc".to_owned(),
            elapsed: Some(prost_types::Duration { seconds: 3, nanos: 0 }),
            wait: Some(Wait {
                what: "Off of level 1".to_owned(),
                whose: "bmc".to_owned(),
                until: at(1_020),
                ..Default::default()
            }),
            ..Default::default()
        };
        (update, arrived)
    }

    fn reads(line: &mut NodeProgress, power: Power) {
        let reading = DeviceReading { device: "bmc".to_owned(), power: power.into(), ..Default::default() };
        if let Some((update, _)) = &mut line.latest {
            update.readings = vec![reading.clone()];
        }
        line.readings.insert("bmc".to_owned(), reading);
    }

    fn end(line: &mut NodeProgress, kind: OutcomeKind, reason: Reason) {
        let outcome = Outcome {
            kind: kind.into(),
            reason: reason.into(),
            released: kind == OutcomeKind::Fenced,
            ..Default::default()
        };
        line.end(FollowEnd::Outcome(outcome));
    }

    fn some(begun: Instant) -> Vec<NodeProgress> {
        let names = ["r1n03", "r1n01", "r2n03", "r2n04", "r2n05"];
        let mut lines: Vec<NodeProgress> = names.iter().map(|name| line(name, Some(begun))).collect();
        for line in &mut lines[..4] {
            line.latest = Some(fencing(begun + Duration::from_millis(8_500)));
        }
        end(&mut lines[0], OutcomeKind::Fenced, Reason::Unspecified);
        reads(&mut lines[1], Power::Off);
        reads(&mut lines[2], Power::On);
        lines[3].broken = Some("reset".to_owned());
        lines
    }

    #[test]
    fn a_line_says_what_is_done_what_is_waited_for_and_how_long_still() {
        let begun = Instant::now();
        let now = begun + Duration::from_secs(10);
        assert_eq!(
            frame(&some(begun), now, 80, 24, Page::PLAIN),
            [
                "NODE   STATE      TIME    LIMIT  NOW",
                "r1n03  fenced     3.0 s          off proven; volumes none to let go",
                "r1n01  proving    4.5 s   18 s   bmc reads off; waits for Off of level 1 (bmc)",
                "r2n03  switching  4.5 s   18 s   bmc reads ON; waits for Off of level 1 (bmc)",
                "r2n04  switching  4.5 s   18 s   connection lost (reset), trying again",
                "r2n05  asking     10.0 s",
                "1 of 5 released, 0 failed. Ctrl-C leaves; the fences go on",
            ]
        );
        assert_eq!(
            frame(&some(begun), now, 60, 24, Page::PLAIN)[2..4],
            [
                "r1n01  proving    18 s   bmc reads off; waits for Off of…",
                "r2n03  switching  18 s   bmc reads ON; waits for Off of…",
            ]
        );
        let coloured = frame(&some(begun), now, 80, 24, Page { colours: true, width: Some(80) });
        assert!(coloured[2].contains("\x1b[33mproving"), "{}", coloured[2]);
    }

    #[test]
    fn what_keeps_a_fence_from_its_first_off_is_seen_in_a_narrow_window() {
        let begun = Instant::now();
        let mut lines = vec![line("db1", Some(begun))];
        let (mut update, arrived) = fencing(begun);
        update.off_sent = Some(false);
        update.text = "the budget was set aside by ada: it burns".to_owned();
        let wait = update.wait.as_mut().expect("it waits");
        wait.what = "bmc: unreachable: 10.9.0.13:623: no route; an answer of level 1".to_owned();
        lines[0].latest = Some((update, arrived));
        let shown = frame(&lines, begun, 60, 24, Page::PLAIN);
        assert_eq!(shown[1], "db1   asking  20 s   waits for bmc: unreachable:…");
    }

    #[test]
    fn on_its_way_back_it_says_what_it_waits_for() {
        let begun = Instant::now();
        let mut lines = vec![line("db1", Some(begun))];
        let (mut update, arrived) = fencing(begun);
        (update.phase, update.text) =
            (Phase::Unfencing.into(), "closed hold of bmc, off of bmc: it has ended".to_owned());
        update.wait.as_mut().expect("it waits").what = "the end of receipt".to_owned();
        lines[0].latest = Some((update, arrived));
        let shown = frame(&lines, begun, 80, 24, Page::PLAIN);
        assert!(shown[1].ends_with("waits for the end of receipt (bmc)"), "{}", shown[1]);
    }

    #[test]
    fn an_off_that_was_sent_is_told_as_one() {
        let begun = Instant::now();
        let mut lines = vec![line("n1", Some(begun))];
        lines[0].latest = Some(fencing(begun));
        let shown = frame(&lines, begun, 80, 24, Page::PLAIN);
        assert!(shown[1].contains("an off was sent to bmc; waits for"), "{}", shown[1]);
        assert_eq!(shown[2], "Ctrl-C leaves; the fence goes on");
    }

    #[test]
    fn of_forty_those_are_shown_that_are_under_way_or_failed() {
        let begun = Instant::now();
        let mut lines: Vec<NodeProgress> = (0..40).map(|n| line(&format!("n{n:02}"), Some(begun))).collect();
        lines.iter_mut().for_each(|line| line.latest = Some(fencing(begun)));
        lines[..30].iter_mut().for_each(|line| end(line, OutcomeKind::Fenced, Reason::Unspecified));
        end(&mut lines[7], OutcomeKind::NeedsOperator, Reason::LevelsSpent);
        lines[39].started = None;
        let shown = frame(&lines, begun, 60, 14, Page::PLAIN);
        assert_eq!(shown.len(), 14);
        assert!(shown.iter().all(|line| line.chars().count() <= 60), "{shown:#?}");
        let names: Vec<&str> = shown[1..13].iter().map(|line| &line[..3]).collect();
        assert_eq!(
            names,
            ["n30", "n31", "n32", "n33", "n34", "n35", "n36", "n37", "n38", "n07", "n39", "n00"]
        );
        assert!(shown[10].contains("NEEDS OPERATOR"), "{}", shown[10]);
        assert_eq!(shown[13], "29 of 40 released, 1 failed, 28 not shown. Ctrl-C leaves;…");
    }

    #[test]
    fn nothing_is_wider_than_a_window_of_twenty_columns() {
        let begun = Instant::now();
        let shown = frame(&some(begun), begun, 20, 24, Page::PLAIN);
        assert!(shown.iter().all(|line| line.chars().count() <= 20), "{shown:#?}");
    }
}
