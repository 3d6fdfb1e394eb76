//! What was to be reached, and whether it was.

/// All goals of a run.
#[derive(Debug, Default)]
pub struct Goals(Vec<(String, bool)>);

impl Goals {
    /// One more, with the numbers it was judged by.
    pub fn judge(&mut self, goal: impl Into<String>, met: bool) {
        self.0.push((goal.into(), met));
    }

    /// Tells them all.
    pub fn print(&self) {
        println!("\nGOALS");
        for (goal, met) in &self.0 {
            println!("  {}  {goal}", if *met { "met   " } else { "MISSED" });
        }
        let missed = self.0.iter().filter(|(_, met)| !met).count();
        println!("  {} of {} met", self.0.len() - missed, self.0.len());
    }
}
