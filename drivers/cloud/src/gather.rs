//! Who comes at nearly the same time: they go in one request, so that one that fails is one failure.

use std::time::Duration;

use tokio::time::sleep;

/// Who comes within this goes along.
const STEP: Duration = Duration::from_millis(5);
/// While more come, it is waited for them, but no longer than this.
const LONGEST: Duration = Duration::from_millis(25);

/// Waits until nobody came for a moment, or so many wait, or it was long enough.
pub async fn gather(most: usize, waiting: impl Fn() -> usize) {
    // Steps are counted, and not the time: on a machine that is busy each of them takes longer, and who comes comes later.
    let (mut waited, mut seen) = (Duration::ZERO, 0);
    while waited < LONGEST {
        sleep(STEP).await;
        waited += STEP;
        let now = waiting();
        if now == std::mem::replace(&mut seen, now) || now >= most {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_waited_while_more_come_but_not_for_long() {
        let began = Instant::now();
        let steps = || usize::try_from(began.elapsed().as_millis() / 5).expect("few");
        for (most, come, wanted) in [(1_000, 1_usize, 10), (1_000, 3, 20), (1_000, 1_000, 25), (2, 1_000, 10)]
        {
            let before = steps();
            gather(most, || come.min(steps() - before)).await;
            assert_eq!((steps() - before) * 5, wanted, "{most} at most, {come} come");
        }
    }
}
