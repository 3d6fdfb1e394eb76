//! From which glibc on a program runs: the newest version of glibc's symbols that it asks for.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::run;

/// The oldest system that a package is for has this one: RHEL 8, Debian 10, Ubuntu 20.04, and all that came after them.
pub const LIMIT: (u32, u32) = (2, 28);

/// The newest version that one of them asks for: what a package depends on. With `limited`, one above [`LIMIT`] is a failure.
pub fn least(programs: &[PathBuf], limited: bool) -> Result<(u32, u32), Failure> {
    let mut least = (2, 0);
    for program in programs {
        let wanted = wanted(program)?;
        if limited {
            within(program, wanted)?;
        }
        least = least.max(wanted);
    }
    Ok(least)
}

fn within(program: &Path, wanted: (u32, u32)) -> Result<(), Failure> {
    if wanted <= LIMIT {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} asks for a symbol of glibc {}.{}, and packages are for glibc {}.{} on",
        program.display(),
        wanted.0,
        wanted.1,
        LIMIT.0,
        LIMIT.1
    )))
}

fn wanted(program: &Path) -> Result<(u32, u32), Failure> {
    let mut ask = Command::new("readelf");
    ask.args(["--version-info", "--wide"]).arg(program).env("LC_ALL", "C");
    let told = run::output(ask)?;
    newest(&String::from_utf8_lossy(&told))
        .ok_or(Failure::new(format!("readelf finds no symbol of glibc in {}", program.display())))
}

/// Reads words as `GLIBC_2.28`, of whichever library of glibc's; others (`GLIBC_PRIVATE`, `GCC_3.0`) are no versions of it.
fn newest(told: &str) -> Option<(u32, u32)> {
    let versions = told.split(|c: char| c.is_whitespace() || "(),".contains(c)).filter_map(|word| {
        let mut numbers = word.strip_prefix("GLIBC_")?.split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = "\
Version symbols section '.gnu.version' contains 3 entries:
  000:   0 (*local*)       2 (GLIBC_2.2.5)   3 (GLIBC_2.9)
Version needs section '.gnu.version_r' contains 2 entries:
  000000: Version: 1  File: libc.so.6  Cnt: 2
  0x0010:   Name: GLIBC_2.28  Flags: none  Version: 5
  0x0020:   Name: GLIBC_2.3.4  Flags: none  Version: 4
  0x0030: Version: 1  File: libgcc_s.so.1  Cnt: 1
  0x0040:   Name: GCC_4.2.0  Flags: none  Version: 6
";

    #[test]
    fn the_newest_version_is_that_of_the_greatest_number() {
        assert_eq!(newest(TOLD), Some((2, 28)));
        assert_eq!(newest("Name: GLIBC_2.9  Name: GLIBC_2.17"), Some((2, 17)));
        assert_eq!(newest("No version information found in this file."), None);
    }

    #[test]
    fn a_program_that_asks_for_more_is_refused_and_one_that_does_not_is_not() {
        let program = Path::new("/x/picketd");
        assert_eq!(within(program, LIMIT), Ok(()));
        let Err(Failure(why)) = within(program, (2, 34)) else { panic!("it was taken") };
        assert!(why.contains("picketd") && why.contains("2.34") && why.contains("2.28"), "{why}");
    }

    #[test]
    fn our_own_program_asks_for_some() {
        let own = [std::env::current_exe().expect("a program")];
        assert!(least(&own, false).is_ok_and(|least| least > (2, 0)));
    }
}
