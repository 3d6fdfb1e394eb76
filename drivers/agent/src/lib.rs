//! A ClusterLabs fence agent as a device.
//!
//! **Purpose.** Power of what only an agent knows how to switch (outlets, blades, machines of other people's clouds), by programs
//! that exist: `action=off`, `on` and `status` on their standard input.
//! **Non-goals.** No `reboot`, `list`, `monitor` or unfencing; no hold and no identity, which agents do not have; no agent whose
//! off is not power: what an agent's word is worth stands in [`list`], read in its source.
//!
//! # Invariants
//!
//! - An agent never chooses what it switches: the settings name it in full, and one device has one endpoint
//!   however it is spelled (S13). Shown by `an_agent_that_would_choose_by_itself_is_told_which`,
//!   `one_device_in_two_spellings_has_one_endpoint`.
//! - One agent runs at once a device, and no more of all agents than the settings say: the gateway itself is a
//!   unit of theirs. Shown by `more_programs_run_side_by_side_once_the_settings_say_so`.
//! - Nothing that an agent says is On or Off but its status in words *and* in its exit code, which must agree
//!   (S1). Shown by `only_a_code_and_a_word_that_agree_are_on_or_off`.
//! - An agent whose status says off also where it does not know proves nothing by itself (`never_alone`). Shown
//!   by `what_reads_off_where_it_does_not_know_is_at_best_claimed`.
//! - An agent never outlives its call, nor the gateway, and nothing of it is left behind (S8). Shown by
//!   `what_is_killed_has_an_unknown_effect_and_nothing_of_it_is_left`.
//! - No secret is in the arguments or the environment of an agent, nor in an error (S18). Shown by
//!   `no_secret_stands_in_the_settings_nor_in_a_fault`, `no_secret_is_repeated_however_it_is_quoted`.
//!
//! # What an agent does with our own off
//!
//! Agents read the status first, and where it says off they say "Already OFF" and send nothing (`fence_action` of fencing.py 4.12.1).
//! So "our own off, always" (S2) is kept here as far as an agent lets it be: it is told as "already off", and the long window follows,
//! at whose end the off is asked for again. What falls within somebody else's power cycle reads On within that window, and is switched off.
//!
//! # What bounds a late command (S5, S8)
//!
//! An agent that ended by itself and said that it succeeded has read the new status from the device: that command's end is known.
//! An agent that was killed, or that failed, sends nothing more: it is our child, dead with all that it started in its group, also
//! where the gateway dies. But what it had sent may lie in a network, in a device that is slow, or in an API that does one thing after the
//! other, and neither the agent nor we can call it back. Nor does anything bound how long a gateway that was stopped between its permit
//! and the agent's own login may take, where its whole machine was stopped. So an effect lives as long as its run may, which goes on where its
//! gateway stands still and cannot see that it is deposed, and then as long as the operator vouches for (`max_life`); without bound where nobody does: while
//! such an effect is open a person is asked instead of an on.

mod answer;
mod current_settings;
mod driver;
mod kind;
pub mod list;
mod metadata;
mod metadata_cache;
mod settings;

pub use driver::AgentDriver;
pub use kind::AgentKind;
pub use settings::Settings;
