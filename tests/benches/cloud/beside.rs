//! The fence agent of the cloud, as Debian ships it, one instance after the other.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Wrong;
use crate::parts::Counts;
use crate::places::Place;

/// The agents' own library is the system's, and the cloud's client that of the peer, whose Python this runs in.
const RUN: &str = "import runpy, sys\nsys.path.append('/usr/lib/python3/dist-packages')\n\
                   sys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')";

/// What one of its fences took.
pub struct Agent {
    fenced: usize,
    took: Duration,
    counts: Counts,
}

impl Agent {
    /// Requests for each instance.
    pub fn requests(&self) -> f64 {
        self.counts.all() as f64 / self.fenced as f64
    }

    /// The time for each.
    pub fn took(&self) -> Duration {
        self.took / u32::try_from(self.fenced).unwrap_or(1)
    }

    /// For people.
    pub fn print(&self, name: &str) {
        let each = self.took().as_secs_f64();
        println!(
            "  {name}, {} one after the other: {each:.2} s each, {:.1} requests each ({})",
            self.fenced,
            self.requests(),
            self.counts.words()
        );
    }
}

/// Runs an agent with what it reads from its standard input; what it complained of, if it failed.
pub async fn run(
    (python, agent): (PathBuf, &str),
    input: String,
    variables: Vec<(&'static str, String)>,
) -> Result<(), Wrong> {
    let mut command = Command::new(python);
    command.args(["-W", "ignore", "-c", RUN, &format!("/usr/sbin/{agent}")]).envs(variables);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = tokio::task::spawn_blocking(move || {
        let mut agent = command.spawn()?;
        if let Some(mut stdin) = agent.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        agent.wait_with_output()
    });
    let ended = ran.await??;
    if ended.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&ended.stderr).into()) }
}

/// Fences so many.
pub async fn measure(place: &dyn Place, count: usize) -> Result<Agent, Wrong> {
    let instances = place.instances(count).await?;
    place.fill_limits().await?;
    let before = place.counts().await?;
    let began = Instant::now();
    for instance in &instances {
        let fenced = place.fence_by_agent(instance).await;
        fenced.map_err(|wrong| format!("{} did not fence {instance}: {wrong}", place.agent()))?;
    }
    let took = began.elapsed();
    let counts = place.counts().await?.since(&before);
    let on = place.still_on(&instances).await?;
    if !on.is_empty() {
        println!("  {} SAID OFF of what is on: {}", place.agent(), on.join(", "));
    }
    Ok(Agent { fenced: count, took, counts })
}
