//! The lcov tracefile format, as described in `geninfo(1)`; editors and coverage services read it.

use crate::compile::coverage::Coverage;
use crate::text::Text;

/// Returns the coverage as a tracefile. Paths are relative to the repository.
pub fn coverage_lcov(coverage: &Coverage) -> Text {
    let mut shown = Text::new();
    for file in &coverage.files {
        let mut records = vec!["TN:".to_owned(), format!("SF:{}", file.path)];
        for (number, split) in file.splits.iter().enumerate() {
            let line = coverage
                .sources
                .get(split.span.file)
                .position(split.span.range().start)
                .line;
            let was_asked = split.outcomes.iter().any(|&count| count > 0);
            for (branch, count) in split.outcomes.iter().enumerate() {
                if split.is_excused && *count == 0 {
                    continue;
                }
                let taken = match was_asked {
                    true => count.to_string(),
                    false => "-".to_owned(),
                };
                records.push(format!("BRDA:{line},{number},{branch},{taken}"));
            }
        }
        let (outcomes, lines) = (file.outcomes(), file.lines());
        records.push(format!("BRF:{}", outcomes.all));
        records.push(format!("BRH:{}", outcomes.reached));
        let ran = file.lines.iter();
        records.extend(ran.map(|(line, count)| format!("DA:{line},{count}")));
        records.push(format!("LF:{}", lines.all));
        records.push(format!("LH:{}", lines.reached));
        records.push("end_of_record".to_owned());
        for record in records {
            shown.push(&Text::line(&record));
            shown.push(&Text::lines("\n"));
        }
    }
    shown
}
