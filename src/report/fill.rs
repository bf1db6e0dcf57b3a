//! Line wrapping at spaces.

use std::ops::Range;

/// Breaks a line at spaces into lines of up to `width` characters. Text in backticks is kept
/// together if it is short.
pub(super) fn wrapped(line: &str, width: usize) -> String {
    let words = words(line, width);
    let lines = fill(words.iter().map(|word| word.chars().count()), width);
    lines
        .into_iter()
        .map(|line| words[line].join(" "))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Distributes words with a space between them over lines of up to `width` characters. Returns the
/// range of word indices of each line.
pub(crate) fn fill(words: impl Iterator<Item = usize>, width: usize) -> Vec<Range<usize>> {
    let (mut lines, mut used): (Vec<Range<usize>>, usize) = (Vec::new(), 0);
    for (index, word) in words.enumerate() {
        match lines.last_mut().filter(|_| used + 1 + word <= width) {
            Some(line) => {
                line.end = index + 1;
                used += 1 + word;
            }
            None => {
                lines.push(index..index + 1);
                used = word;
            }
        }
    }
    lines
}

/// Splits a line into words, for filling lines of up to `width` characters. Text in backticks is
/// one word unless it is longer than three quarters of a line.
pub(crate) fn words(line: &str, width: usize) -> Vec<&str> {
    let longest = width * 3 / 4;
    let mut quoted = false;
    let parts = line.split(move |c| {
        quoted ^= c == '`';
        c == ' ' && !quoted
    });
    parts
        .flat_map(|part| {
            if part.chars().count() > longest {
                part.split(' ').collect()
            } else {
                vec![part]
            }
        })
        .collect()
}
