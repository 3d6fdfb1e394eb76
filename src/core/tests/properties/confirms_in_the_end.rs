//! Care has an end too: a node whose BMC answers, does not restart and does not lie is confirmed, whatever was lost at
//! first, whatever cycle it was in, and however slowly it falls.

use proptest::prelude::*;

use crate::cases;
use crate::confirmed_only_when_it_stays_dark::story;
use crate::truth::{END, Fate, Levels, Luck, Story, live};

fn honest(story: Story) -> Story {
    let fine = Luck { there: 5, back: 5, fate: Fate::Fine };
    // A session that ends by itself before our off was taken is lost: then it is a person's turn.
    let kept = |luck: Luck| if luck.fate == Fate::Reconnects { fine } else { luck };
    // What shows its restarts by its silence alone is lost by a silence, once it was heard.
    let first = if story.plain { 1 } else { 12 };
    let luck = story.luck.into_iter().take(first).map(kept).chain(std::iter::repeat_n(fine, 5_000)).collect();
    let levels = if story.levels == Levels::Supplies { Levels::Alone } else { story.levels };
    let (fall, ignored) = (story.fall % 12_000, story.ignored % 2);
    Story { restarts: Vec::new(), liar: None, luck, levels, fall, ignored, ..story }
}

proptest! {
    #![proptest_config(cases(100))]
    #[test]
    fn an_honest_node_is_confirmed_in_the_end(story in story()) {
        let story = honest(story);
        let ending = live(&story);
        assert!(ending.confirmed_at.is_some_and(|at| at < END), "{}", ending.said);
    }
}
