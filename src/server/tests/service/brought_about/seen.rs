//! How often what is worth judging happened.

macro_rules! seen {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Seen {
            $($(#[$doc])* pub(super) $name: u64,)*
        }

        impl Seen {
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }

            /// Each of them happened.
            pub fn is_rich(&self) {
                let all = [$(self.$name),*];
                assert!(all.iter().all(|count| *count >= 3), "too little happened: {self:?}");
            }
        }
    };
}

seen! {
    opened,
    joined,
    for_children,
    dropped,
    set_aside,
    barred,
    waited,
    denied,
    /// A request waited, and went once its caller had no right to it any more.
    lost,
    /// The first off of a fence was sent.
    sent,
    /// And some time after the fence had begun.
    sent_late,
    braked,
    /// What a person believes counts no more.
    believed,
    paused,
    resumed,
    /// A pause kept a fence from beginning.
    pause_bars,
    /// A request came into the queue.
    entered,
    /// The queue had no room for that caller.
    crowded,
    /// The same was asked once more.
    repeated,
    /// Another gateway leads.
    led_anew,
}
