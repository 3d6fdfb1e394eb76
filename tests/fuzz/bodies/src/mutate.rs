//! Deterministic mutations of a corpus: the same seed gives the same inputs.

/// Longer inputs say nothing new here.
const LONGEST: usize = 8 * 1_024;

/// Numbers from a seed (xorshift64*).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Of that seed.
    pub fn new(seed: u64) -> Self {
        // The state is never zero.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `end`; 0 where that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        // The upper bits are the better ones.
        ((self.next() >> 32) as usize).checked_rem(end).unwrap_or(0)
    }
}

/// Makes inputs from a corpus.
#[derive(Debug)]
pub struct Mutator<'c> {
    corpus: &'c [Vec<u8>],
    random: Random,
}

const TELLING: [u8; 16] = [0, 1, 2, 3, 7, 8, 16, 0x20, 0x3A, 0x40, 0x7F, 0x80, 0xC0, 0xFE, 0xFF, b'"'];
const WORDS: [&str; 16] = [
    "null",
    "true",
    "-1",
    "18446744073709551616",
    "1e999",
    "{}",
    "[]",
    "\"\"",
    "[",
    "]",
    "{",
    "=",
    "*",
    "\n",
    "\u{0}",
    "\u{2028}",
];

impl<'c> Mutator<'c> {
    /// Over that corpus, from that seed.
    pub fn new(corpus: &'c [Vec<u8>], seed: u64) -> Self {
        Self { corpus, random: Random::new(seed) }
    }

    /// The next input: one of the corpus, changed one to four times.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.corpus.get(self.random.below(self.corpus.len())).cloned().unwrap_or_default();
        for _ in 0..=self.random.below(4) {
            self.change(&mut input);
        }
        input.truncate(LONGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let random = &mut self.random;
        let at = random.below(input.len());
        let end = (at + 1 + random.below(16)).min(input.len());
        match random.below(9) {
            0 if !input.is_empty() => input[at] ^= 1 << random.below(8),
            1 if !input.is_empty() => input[at] = TELLING[random.below(TELLING.len())],
            2 if !input.is_empty() => input[at] = random.next() as u8,
            3 => drop(input.drain(at..end)),
            4 => input.insert(at, random.next() as u8),
            5 => {
                let piece = input[at..end].to_vec();
                let to = random.below(input.len() + 1);
                drop(input.splice(to..to, piece));
            }
            6 => drop(input.splice(at..at, WORDS[random.below(WORDS.len())].bytes())),
            7 => input.truncate(at),
            _ => {
                // The beginning of this one, the end of another.
                let other = &self.corpus[random.below(self.corpus.len())];
                let from = random.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_inputs_and_they_differ_from_the_corpus() {
        let corpus = [b"r1n[01-40]".to_vec(), b"".to_vec()];
        let inputs = |seed| {
            let mut mutator = Mutator::new(&corpus, seed);
            (0..200).map(|_| mutator.next_input()).collect::<Vec<_>>()
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
        let new = inputs(7).iter().filter(|input| !corpus.contains(input)).count();
        assert!(new > 150, "{new}");
    }

    #[test]
    fn an_empty_corpus_is_no_trouble() {
        let corpus = [Vec::new()];
        let mut mutator = Mutator::new(&corpus, 1);
        for _ in 0..1_000 {
            mutator.next_input();
        }
    }
}
