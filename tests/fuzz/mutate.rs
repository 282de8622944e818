//! How bytes are changed.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Words that the formats here are made of, and numbers at which things go wrong.
const WORDS: &[&[u8]] = &[
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"\"\"",
    b"0",
    b"-1",
    b"18446744073709551615",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"4294967295",
    b"1e999",
    b"\\u202e",
    b"\\ud800",
    b"\xe2\x80\xae",
    b"\xd8\x9c",
    b"\xff",
    b"\0",
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"/",
    b",",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"Content-Length: 0\r\n",
    b"Content-Length: 18446744073709551615\r\n",
    b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"0\r\n\r\n",
    b"9999-12-31T23:59:59.999999999Z",
    b"-23:59",
];

/// A field that no form has.
const FIELD: &[u8] = b"\"surprise\":1,";

/// One change.
#[derive(Debug, Clone)]
enum Edit {
    Set(Index, u8),
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Word(Index, usize),
    Remove(Index, Index),
    Repeat(Index, Index, u8),
    Cut(Index),
    /// From a place on, another seed from a place on.
    Splice(Index, Index, Index),
    /// A number gives way to another.
    Number(Index, u64),
    /// An object gains a field.
    Field(Index),
    /// One line, of this seed or another, once more.
    Line(Index, Index),
    /// Two stretches between separators change places.
    Swap(Index, Index),
}

/// What is made of a seed, or of nothing.
#[derive(Debug, Clone)]
pub struct Changed {
    seed: Option<Index>,
    raw: Vec<u8>,
    edits: Vec<Edit>,
}

/// Changes to these seeds; now and then bytes of any kind.
pub fn changed(seeds: &[Vec<u8>]) -> impl Strategy<Value = Changed> + use<> {
    let longest = seeds.iter().map(Vec::len).max().unwrap_or(0).clamp(64, 512);
    let of_seed = (any::<Index>(), vec(edit(), 0..6)).prop_map(|(seed, edits)| Changed {
        seed: Some(seed),
        raw: Vec::new(),
        edits,
    });
    let raw = vec(any::<u8>(), 0..longest).prop_map(|raw| Changed { seed: None, raw, edits: Vec::new() });
    let text = ".{0,80}".prop_map(|text| Changed { seed: None, raw: text.into_bytes(), edits: Vec::new() });
    prop_oneof![16 => of_seed, 1 => raw, 1 => text]
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<Index>;
    prop_oneof![
        3 => (at(), any::<u8>()).prop_map(|(place, byte)| Edit::Set(place, byte)),
        3 => (at(), 0..8_u8).prop_map(|(place, bit)| Edit::Flip(place, 1 << bit)),
        2 => (at(), vec(any::<u8>(), 1..8)).prop_map(|(place, bytes)| Edit::Insert(place, bytes)),
        4 => (at(), 0..WORDS.len()).prop_map(|(place, word)| Edit::Word(place, word)),
        2 => (at(), at()).prop_map(|(from, to)| Edit::Remove(from, to)),
        1 => (at(), at(), any::<u8>()).prop_map(|(from, to, times)| Edit::Repeat(from, to, times)),
        1 => at().prop_map(Edit::Cut),
        2 => (at(), at(), at()).prop_map(|(place, seed, from)| Edit::Splice(place, seed, from)),
        4 => (at(), prop_oneof![0..4_u64, any::<u64>(), u64::MAX - 2..=u64::MAX])
            .prop_map(|(place, number)| Edit::Number(place, number)),
        2 => (at(), at()).prop_map(|(one, other)| Edit::Swap(one, other)),
        2 => at().prop_map(Edit::Field),
        2 => (at(), at()).prop_map(|(seed, line)| Edit::Line(seed, line)),
    ]
}

impl Changed {
    /// The bytes.
    pub fn apply(&self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = self.seed.map_or_else(|| self.raw.clone(), |seed| seed.get(seeds).clone());
        for edit in &self.edits {
            edit.apply(&mut bytes, seeds);
        }
        bytes
    }
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let place = |index: &Index, bytes: &[u8]| index.index(bytes.len() + 1);
        match self {
            Self::Set(..) | Self::Flip(..) if bytes.is_empty() => {}
            Self::Set(at, byte) => *at.get_mut(bytes) = *byte,
            Self::Flip(at, bits) => *at.get_mut(bytes) ^= bits,
            Self::Insert(at, more) => drop(bytes.splice(place(at, bytes)..place(at, bytes), more.clone())),
            Self::Word(at, word) => {
                let at = place(at, bytes);
                drop(bytes.splice(at..at, WORDS[*word].iter().copied()));
            }
            Self::Remove(from, to) => drop(bytes.drain(stretch(from, to, bytes))),
            Self::Repeat(from, to, times) => {
                let stretch = stretch(from, to, bytes);
                let again =
                    bytes[stretch.clone()].repeat(usize::from(*times).min(4096 / stretch.len().max(1)));
                drop(bytes.splice(stretch.end..stretch.end, again));
            }
            Self::Cut(at) => bytes.truncate(place(at, bytes)),
            Self::Splice(at, seed, from) => {
                let seed = seed.get(seeds);
                bytes.truncate(place(at, bytes));
                bytes.extend(&seed[place(from, seed)..]);
            }
            Self::Number(at, number) => {
                let numbers = runs(bytes, u8::is_ascii_digit);
                if !numbers.is_empty() {
                    drop(bytes.splice(at.get(&numbers).clone(), number.to_string().into_bytes()));
                }
            }
            Self::Field(at) => {
                let objects: Vec<usize> = (1..=bytes.len()).filter(|end| bytes[end - 1] == b'{').collect();
                if !objects.is_empty() {
                    let at = *at.get(&objects);
                    let field = if bytes.get(at) == Some(&b'}') { &FIELD[..FIELD.len() - 1] } else { FIELD };
                    drop(bytes.splice(at..at, field.iter().copied()));
                }
            }
            Self::Line(seed, line) => {
                let lines: Vec<&[u8]> = seed.get(seeds).split(|byte| *byte == b'\n').collect();
                bytes.push(b'\n');
                bytes.extend(*line.get(&lines));
            }
            Self::Swap(one, other) => {
                let words = runs(bytes, |byte| !b",:{}[]\n\r \"".contains(byte));
                if words.len() > 1 {
                    let (one, other) = (one.get(&words).clone(), other.get(&words).clone());
                    let (first, last) = if one.start <= other.start { (one, other) } else { (other, one) };
                    let (early, late) = (bytes[first.clone()].to_vec(), bytes[last.clone()].to_vec());
                    drop(bytes.splice(last, early));
                    drop(bytes.splice(first, late));
                }
            }
        }
    }
}

fn stretch(from: &Index, to: &Index, bytes: &[u8]) -> std::ops::Range<usize> {
    let (from, to) = (from.index(bytes.len() + 1), to.index(bytes.len() + 1));
    from.min(to)..from.max(to)
}

/// The stretches of bytes of a kind.
fn runs(bytes: &[u8], is: impl Fn(&u8) -> bool) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut begin = None;
    for (at, byte) in bytes.iter().chain([&b'\n']).enumerate() {
        let within = at < bytes.len() && is(byte);
        match begin {
            None if within => begin = Some(at),
            Some(from) if !within => {
                found.push(from..at);
                begin = None;
            }
            _ => {}
        }
    }
    found
}
