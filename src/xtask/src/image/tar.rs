//! A tar archive that depends on nothing but what is put into it: no times, no users of this machine, no order of a disk's.

use crate::failure::Failure;

const BLOCK: usize = 512;
/// Longer paths would want an extension of the format (POSIX.1-1988, ustar).
const LONGEST: usize = 100;
const LARGEST: u64 = 0o777_7777_7777;

/// Whose a file is, by number: an image knows no names but its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner(pub u32);

/// The archive, as far as it is written.
#[derive(Debug, Default)]
pub struct Tar(Vec<u8>);

impl Tar {
    /// A folder, without a slash in front; its parents come before it.
    pub fn folder(&mut self, path: &str, mode: u32, owner: Owner) -> Result<(), Failure> {
        self.header(&format!("{path}/"), b'5', mode, owner, 0)
    }

    /// A file, without a slash in front.
    pub fn file(&mut self, path: &str, mode: u32, owner: Owner, content: &[u8]) -> Result<(), Failure> {
        self.header(path, b'0', mode, owner, content.len() as u64)?;
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
        Ok(())
    }

    /// The whole archive.
    pub fn done(mut self) -> Vec<u8> {
        // It ends with two blocks of zeros.
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }

    fn header(&mut self, path: &str, kind: u8, mode: u32, owner: Owner, size: u64) -> Result<(), Failure> {
        if path.len() > LONGEST || size > LARGEST {
            return Err(Failure::new(format!("{path} is too long or too large for an archive")));
        }
        let mut header = [0; BLOCK];
        let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
        put(0, path.as_bytes());
        put(100, format!("{mode:07o}").as_bytes());
        put(108, format!("{:07o}", owner.0).as_bytes());
        put(116, format!("{:07o}", owner.0).as_bytes());
        put(124, format!("{size:011o}").as_bytes());
        // When it was changed: the beginning of time.
        put(136, b"00000000000");
        put(156, &[kind]);
        put(257, b"ustar\x0000");
        // The sum is taken with blanks in its own place.
        put(148, b"        ");
        let sum: u32 = header.iter().copied().map(u32::from).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&header);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    /// What the system's own tar makes of it.
    fn listed(archive: &[u8]) -> String {
        let mut command = Command::new("tar");
        command.args(["--list", "--verbose", "--numeric-owner", "--utc", "--file=-"]);
        let mut tar = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("tar");
        tar.stdin.take().expect("its input").write_all(archive).expect("written");
        let output = tar.wait_with_output().expect("tar");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    #[test]
    fn tar_reads_what_is_written() {
        let mut tar = Tar::default();
        tar.folder("var", 0o755, Owner(0)).expect("short");
        tar.folder("var/lib", 0o700, Owner(65_532)).expect("short");
        tar.file("var/lib/text", 0o644, Owner(0), b"some text").expect("short");
        tar.file("empty", 0o755, Owner(0), b"").expect("short");
        let listed = listed(&tar.done());
        let lines: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
        let told: Vec<[&str; 4]> = lines.iter().map(|line| [line[0], line[1], line[2], line[5]]).collect();
        assert_eq!(
            told,
            [
                ["drwxr-xr-x", "0/0", "0", "var/"],
                ["drwx------", "65532/65532", "0", "var/lib/"],
                ["-rw-r--r--", "0/0", "9", "var/lib/text"],
                ["-rwxr-xr-x", "0/0", "0", "empty"],
            ]
        );
        assert!(lines.iter().all(|line| line[3] == "1970-01-01"), "{listed}");
    }

    #[test]
    fn a_path_that_does_not_fit_is_refused() {
        let refused = Tar::default().file(&"x".repeat(101), 0o644, Owner(0), b"");
        assert!(refused.is_err_and(|Failure(why)| why.contains("too long")));
    }
}
