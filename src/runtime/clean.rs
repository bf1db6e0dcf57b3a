//! Prepares the answers of completion and refactoring agents for insertion into a file.
//!
//! Models put code into fences, introduce it with a sentence, repeat the code around the gap, or
//! indent it differently from the code that it replaces. Given an answer and the place where the
//! host will insert it, this module returns the code. It changes nothing on mere suspicion: an
//! answer without these faults is returned byte for byte. The history keeps the model's original
//! text.

use std::borrow::Cow;

/// The location where an answer will be inserted. The default contains no text, so that only fences
/// are removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerPlace<'t> {
    /// The text before the answer.
    pub prefix: &'t str,
    /// The text after the answer.
    pub suffix: &'t str,
    /// The text that the answer replaces: its first line determines the indentation of the answer.
    pub replaced: &'t str,
    /// `true` if the location is in a Markdown document, where fences and introductory sentences
    /// are part of the text. Only a fence around the whole answer is then removed.
    pub is_markdown: bool,
}

/// Removes fences, repetitions of the surrounding text, and wrong indentation from an answer.
///
/// ```
/// use reqc::runtime::clean::{AnswerPlace, clean};
///
/// let place = AnswerPlace { prefix: "let total = ", ..AnswerPlace::default() };
/// assert_eq!(clean("```rust\nlet total = a + b;\n```", &place), "a + b;");
/// ```
pub fn clean<'a>(answer: &'a str, place: &AnswerPlace<'_>) -> Cow<'a, str> {
    let code = without_fence(answer, place.is_markdown);
    let code = without_echo_before(code, place.prefix);
    let code = without_echo_after(code, place.suffix);
    indented_like(code, place.replaced)
}

/// A line that begins or ends a block of code in Markdown.
#[derive(Clone, Copy)]
struct Fence<'l> {
    mark: char,
    length: usize,
    /// The text after the fence characters, such as the language.
    info: &'l str,
}

impl<'l> Fence<'l> {
    /// Parses a line as a fence: at most three spaces, then at least three identical fence
    /// characters (`CommonMark`, 4.5).
    fn of(line: &'l str) -> Option<Fence<'l>> {
        let text = line.trim_start_matches(' ');
        let mark = text
            .chars()
            .next()
            .filter(|mark| matches!(mark, '`' | '~'))?;
        let length = text.chars().take_while(|next| *next == mark).count();
        let info = text[length..].trim();
        let is_fence =
            line.len() - text.len() <= 3 && length >= 3 && !(mark == '`' && info.contains('`'));
        is_fence.then_some(Fence { mark, length, info })
    }

    fn is_closed_by(&self, line: Fence<'_>) -> bool {
        line.mark == self.mark && line.length >= self.length && line.info.is_empty()
    }
}

/// A block of code. Its lines and the text around them are given by their offsets in the answer.
struct FencedBlock {
    before: usize,
    start: usize,
    end: usize,
    after: usize,
}

fn without_fence(answer: &str, is_markdown: bool) -> &str {
    let Some(block) = only_block(answer) else {
        return answer;
    };
    let (before, after) = (&answer[..block.before], &answer[block.after..]);
    let is_all = before.trim().is_empty() && after.trim().is_empty();
    let is_code = !is_markdown && (before.trim().is_empty() || is_preamble(before));
    if !is_all && !is_code {
        return answer;
    }
    let code = &answer[block.start..block.end];
    code.strip_suffix('\n')
        .map_or(code, |code| code.strip_suffix('\r').unwrap_or(code))
}

/// Returns `true` if a string introduces code, that is, if it is a short paragraph that ends with a
/// colon.
fn is_preamble(text: &str) -> bool {
    let text = text.trim();
    text.ends_with([':', '：']) && text.lines().count() <= 3 && text.contains(' ')
}

/// Finds the code block of an answer, if there is exactly one at the top level. Because models nest
/// blocks with fences of equal length, a fence with a language opens a block, and a bare fence
/// closes the innermost one.
fn only_block(answer: &str) -> Option<FencedBlock> {
    let mut open: Vec<Fence<'_>> = Vec::new();
    let mut found: Option<FencedBlock> = None;
    let mut at = 0;
    for line in answer.split_inclusive('\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        let Some(fence) = Fence::of(line.trim_end()) else {
            continue;
        };
        match open.last().copied() {
            None if found.is_some() => return None,
            None => {
                found = Some(FencedBlock {
                    before: start,
                    start: end,
                    end: answer.len(),
                    after: answer.len(),
                });
                open.push(fence);
            }
            Some(around) if around.is_closed_by(fence) => {
                open.pop();
                if let Some(block) = found.as_mut().filter(|_| open.is_empty()) {
                    (block.end, block.after) = (start, end);
                }
            }
            Some(around) if around.mark == fence.mark && !fence.info.is_empty() => open.push(fence),
            // A fence made of other characters is part of the block's text.
            Some(_) => {}
        }
    }
    // A block that was cut off extends to the end of the answer.
    let is_cut_inside = open.len() > 1;
    found.filter(|_| !is_cut_inside)
}

/// The minimum number of letters and digits in an echo; a shorter repetition may be intentional.
const SHORTEST_ECHO: usize = 3;

/// The maximum number of lines in an echo.
const LONGEST_ECHO: usize = 200;

fn is_long_enough(text: &str) -> bool {
    text.chars()
        .filter(|character| character.is_alphanumeric())
        .count()
        >= SHORTEST_ECHO
}

/// Removes the longest repetition of the last lines of `prefix` from the beginning of an answer.
fn without_echo_before<'a>(answer: &'a str, prefix: &str) -> &'a str {
    let mut starts: Vec<usize> = prefix
        .rmatch_indices('\n')
        .map(|(at, _)| at + 1)
        .take(LONGEST_ECHO)
        .collect();
    if starts.len() < LONGEST_ECHO {
        starts.push(0);
    }
    let echoes = starts
        .iter()
        .rev()
        .map(|start| &prefix[*start..])
        .filter(|echo| is_long_enough(echo));
    // Some models omit the indentation of the first line.
    let ways = echoes.flat_map(|echo| [echo, echo.trim_start_matches([' ', '\t'])]);
    ways.into_iter()
        .find_map(|echo| answer.strip_prefix(echo))
        .unwrap_or(answer)
}

/// Removes the longest repetition of the first lines of `suffix` from the end of an answer.
fn without_echo_after<'a>(answer: &'a str, suffix: &str) -> &'a str {
    let body = answer.trim_end();
    let mut ends: Vec<usize> = suffix
        .match_indices('\n')
        .map(|(at, _)| at)
        .take(LONGEST_ECHO)
        .collect();
    if ends.len() < LONGEST_ECHO {
        ends.push(suffix.len());
    }
    let echoes = ends
        .iter()
        .rev()
        .map(|end| suffix[..*end].trim_end())
        .filter(|echo| is_long_enough(echo));
    echoes
        .into_iter()
        .find_map(|echo| body.strip_suffix(echo))
        .unwrap_or(answer)
}

/// Replaces an answer's indentation with that of the replaced code, if every line is indented at
/// least as far as the first one.
fn indented_like<'a>(answer: &'a str, replaced: &str) -> Cow<'a, str> {
    let (Some(wanted), Some(own)) = (first_indentation(replaced), first_indentation(answer)) else {
        return Cow::Borrowed(answer);
    };
    if wanted == own
        || !answer
            .lines()
            .all(|line| is_blank(line) || line.starts_with(own))
    {
        return Cow::Borrowed(answer);
    }
    let mut text = String::with_capacity(answer.len());
    for line in answer.split_inclusive('\n') {
        if is_blank(line) {
            text.push_str(line);
        } else {
            text.push_str(wanted);
            text.push_str(&line[own.len()..]);
        }
    }
    Cow::Owned(text)
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// Returns the whitespace at the beginning of the first line that is not blank.
fn first_indentation(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(&line[..line.len() - line.trim_start_matches([' ', '\t']).len()])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOWHERE: AnswerPlace<'static> = AnswerPlace {
        prefix: "",
        suffix: "",
        replaced: "",
        is_markdown: false,
    };

    /// Checks the result for an answer.
    fn check(answer: &str, place: AnswerPlace<'_>, expected: &str) {
        assert_eq!(clean(answer, &place), expected, "{answer:?}");
    }

    #[test]
    fn a_fence_around_the_code_goes() {
        check("```rust\nlet a = 1;\n```", NOWHERE, "let a = 1;");
        check("\n```\na\n\n  b\n```\n", NOWHERE, "a\n\n  b");
        check("~~~~py\r\na\r\n~~~~\r\n", NOWHERE, "a");
        check(
            "Here is the code:\n\n```js\nf()\n```\n\nIt calls `f`.",
            NOWHERE,
            "f()",
        );
        check("```rust\nlet a = 1;\nlet b", NOWHERE, "let a = 1;\nlet b");
        check("```\n```\n", NOWHERE, "");
    }

    #[test]
    fn what_is_not_one_block_of_code_stays() {
        for answer in [
            "```a\n1\n```\nand\n```b\n2\n```",
            "let text = `\n```js\nf()\n```\n`;",
            "/// ```\n/// f()\n/// ```\nfn f() {}",
            "a ``` b",
            "    ```\n    x\n    ```",
        ] {
            check(answer, NOWHERE, answer);
        }
    }

    #[test]
    fn blocks_in_a_block_are_a_part_of_it() {
        let inner = "# Use\n\n```sh\nreqc check\n```\n\nThat is all.";
        check(&format!("```markdown\n{inner}\n```"), NOWHERE, inner);
        check(&format!("````markdown\n{inner}\n````"), NOWHERE, inner);
        let place = AnswerPlace {
            is_markdown: true,
            ..NOWHERE
        };
        check(&format!("```md\n{inner}\n```"), place, inner);
        check(inner, place, inner);
        check(
            "Like this:\n\n```sh\nls\n```\n",
            place,
            "Like this:\n\n```sh\nls\n```\n",
        );
    }

    #[test]
    fn echoes_of_what_stands_around_go() {
        let place = AnswerPlace {
            prefix: "fn add() {\n    let total = ",
            suffix: ";\n    total\n}\n",
            ..NOWHERE
        };
        check("    let total = a + b", place, "a + b");
        check("let total = a + b", place, "a + b");
        check(
            "fn add() {\n    let total = a + b;\n    total\n}\n",
            place,
            "a + b",
        );
        check("a + b", place, "a + b");
        check(
            "(total)",
            AnswerPlace {
                prefix: "f(",
                suffix: ")",
                ..NOWHERE
            },
            "(total)",
        );
    }

    #[test]
    fn the_answer_is_indented_like_what_it_replaces() {
        let place = AnswerPlace {
            replaced: "        if a {\n            b();\n        }\n",
            ..NOWHERE
        };
        check(
            "if a {\n    c();\n\n}",
            place,
            "        if a {\n            c();\n\n        }",
        );
        check("        c();\n", place, "        c();\n");
        check("    c();\n  d();\n", place, "    c();\n  d();\n");
        check(
            "\t\tc();\n",
            AnswerPlace {
                replaced: "\tb();",
                ..NOWHERE
            },
            "\tc();\n",
        );
    }

    /// Generates code without fence characters, and without any of the surrounding text used below.
    fn code() -> impl Strategy<Value = String> {
        proptest::collection::vec("[ \t]{0,6}[a-z(){};=\"'/*#éß]{0,12}\r?", 0..12)
            .prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        #[test]
        fn code_without_fences_and_echoes_is_returned_byte_for_byte(code in code()) {
            let place = AnswerPlace { prefix: "LEFT 123 = ", suffix: " + RIGHT 456\n", ..NOWHERE };
            let cleaned = clean(&code, &place);
            prop_assert!(matches!(cleaned, Cow::Borrowed(_)));
            prop_assert_eq!(cleaned, code.as_str());
        }

        #[test]
        fn code_in_a_fence_comes_out_as_it_went_in(code in code(), language in "[a-z]{0,8}", marks in 3..6usize) {
            let fence = "`".repeat(marks);
            let fenced = format!("{fence}{language}\n{code}\n{fence}\n");
            prop_assert_eq!(clean(&fenced, &NOWHERE), code.strip_suffix('\r').unwrap_or(&code));
        }

        #[test]
        fn an_echo_of_both_sides_goes(code in code()) {
            let place = AnswerPlace { prefix: "LEFT 123 = ", suffix: " + RIGHT 456\n", ..NOWHERE };
            let echoed = format!("LEFT 123 = {code} + RIGHT 456");
            prop_assert_eq!(clean(&echoed, &place), code.as_str());
        }

        #[test]
        fn anything_can_be_cleaned(
            answer in "[`~ a\n\r\t:é]{0,60}", prefix in "[a\n `é]{0,20}", suffix in "[a\n `é]{0,20}",
            replaced in "[a\n \t]{0,12}", is_markdown in any::<bool>(),
        ) {
            let place = AnswerPlace { prefix: &prefix, suffix: &suffix, replaced: &replaced, is_markdown };
            let _ = clean(&answer, &place);
        }
    }
}
