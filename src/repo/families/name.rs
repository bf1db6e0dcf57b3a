//! Normalises model names, which differ between gateways, clouds and dated releases.

/// A model's name, prepared for matching with family patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName {
    /// The parts before the last `/`, in lower case: gateways, then the account that publishes the
    /// model.
    accounts: Vec<String>,
    whole: String,
    normal: usize,
}

impl ModelName {
    /// Parses a name in any spelling.
    pub fn new(name: &str) -> ModelName {
        let whole = spelt(name);
        let normal = without_dates(&whole).len();
        let mut accounts: Vec<String> = name.trim().split('/').map(str::to_lowercase).collect();
        accounts.pop();
        ModelName {
            accounts,
            whole,
            normal,
        }
    }

    /// Returns `true` if an account publishes the model; `*` is any account. Gateways may put their
    /// own names before the account, and patterns may contain these names, too: `openrouter/*`.
    pub(super) fn is_of(&self, account: &str) -> bool {
        let wanted: Vec<&str> = account.split('/').collect();
        let from = self.accounts.len().checked_sub(wanted.len());
        from.is_some_and(|from| {
            let named = self.accounts[from..].iter();
            named
                .zip(&wanted)
                .all(|(name, wanted)| *wanted == "*" || name == wanted)
        })
    }

    /// Returns the name as normalised by [`normal_name`].
    pub fn normal(&self) -> &str {
        &self.whole[..self.normal]
    }

    /// Returns the name including its date; `None` if it contains no date.
    pub fn dated(&self) -> Option<&str> {
        (self.normal < self.whole.len()).then_some(self.whole.as_str())
    }
}

/// Returns a model's name without the parts that do not identify the model: gateway prefixes,
/// regions, dates, `latest`, and tags. The result is in lower case, with `-` in place of every dot:
/// `us.anthropic.claude-opus-4-5-20251101-v1:0` and `anthropic/claude-opus-4.5` have the same
/// result.
pub fn normal_name(name: &str) -> String {
    ModelName::new(name).normal().to_owned()
}

/// Returns the name in a uniform spelling, including its date.
fn spelt(name: &str) -> String {
    let name = name.trim().to_lowercase();
    let name = name.rsplit('/').next().unwrap_or_default();
    let name = name.split(':').next().unwrap_or_default();
    // Google appends dates after an `@`.
    let name = match name.split_once('@') {
        Some((name, date)) if is_number(date) => format!("{name}-{date}"),
        _ => name.split('@').next().unwrap_or_default().to_owned(),
    };
    let name = name.as_str();
    let name = name.strip_prefix("databricks-").unwrap_or(name);
    let plain = without_vendor(name);
    // Bedrock appends its own version number to a model's name.
    let plain = if plain.len() < name.len() {
        without_version(plain)
    } else {
        plain
    };
    plain.replace(['.', '_'], "-")
}

/// Returns the account in a pattern, if any, and the rest in the form of [`normal_name`].
pub(super) fn normal_pattern(pattern: &str) -> (Option<String>, String) {
    let pattern = pattern.to_lowercase();
    let (account, names) = match pattern.rsplit_once('/') {
        Some((account, names)) => (Some(account.to_owned()), names),
        None => (None, pattern.as_str()),
    };
    (account, names.replace('.', "-"))
}

/// Removes a region and a vendor from the start: `us.anthropic.`.
fn without_vendor(name: &str) -> &str {
    let mut left = name;
    while let Some((first, rest)) = left.split_once('.')
        && !first.is_empty()
        && first.chars().all(|c| c.is_ascii_lowercase() || c == '-')
    {
        left = rest;
    }
    left
}

/// Removes `-v1` from the end.
fn without_version(name: &str) -> &str {
    match name.rsplit_once("-v") {
        Some((rest, digits)) if is_number(digits) => rest,
        _ => name,
    }
}

/// Removes dates, build numbers and `latest` from the end: `-2025-09-29`, `-20250929`, `-09-2025`,
/// `-0528`, `-001`.
fn without_dates(name: &str) -> &str {
    let mut left = name;
    while let Some(shorter) = without_date(left) {
        left = shorter;
    }
    left
}

/// Removes a date, a build number or `latest` from the end; returns `None` if there is none.
fn without_date(name: &str) -> Option<&str> {
    let (rest, last) = name.rsplit_once('-')?;
    match last {
        "latest" => Some(rest),
        _ if is_number(last) && last.len() >= 3 => Some(without_short(rest, last.len() == 4)),
        _ if is_number(last) && last.len() == 2 => without_full_date(name),
        _ => None,
    }
}

/// Removes the month that precedes a year: `-09` in `-09-2025`.
fn without_short(name: &str, is_year: bool) -> &str {
    match name.rsplit_once('-') {
        Some((rest, month)) if is_year && month.len() == 2 && is_number(month) => rest,
        _ => name,
    }
}

/// Removes a date such as `-2025-09-29` from the end; returns `None` if there is no date.
fn without_full_date(name: &str) -> Option<&str> {
    let mut parts = name.rsplitn(4, '-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let is_date = [(day, 2), (month, 2), (year, 4)]
        .iter()
        .all(|(part, length)| part.len() == *length && is_number(part));
    parts.next().filter(|_| is_date)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_model_are_one_name() {
        let same = |spellings: &[&str], expected: &str| {
            spellings
                .iter()
                .for_each(|name| assert_eq!(normal_name(name), expected, "{name}"));
        };
        let opus = [
            "claude-opus-4-5",
            "claude-opus-4-5-20251101",
            "claude-opus-4-5@20251101",
            "Anthropic/Claude-Opus-4.5",
            "us.anthropic.claude-opus-4-5-20251101-v1:0",
            "us-gov.anthropic.claude-opus-4-5-v1",
            "openrouter/anthropic/claude-opus-4.5:beta",
            "claude-opus-4-5-latest",
        ];
        same(&opus, "claude-opus-4-5");
        same(
            &["gpt-5.1-2025-11-13", "openai/gpt-5.1", "gpt-5.1"],
            "gpt-5-1",
        );
        same(
            &[
                "models/gemini-2.5-flash-preview-09-2025",
                "gemini-2.5-flash-preview",
            ],
            "gemini-2-5-flash-preview",
        );
        same(
            &["gemini-2.0-flash-001", "google/gemini-2.0-flash:free"],
            "gemini-2-0-flash",
        );
        same(
            &["deepseek/deepseek-r1-0528", "deepseek-r1:8b"],
            "deepseek-r1",
        );
        same(&["deepseek-v4"], "deepseek-v4");
        same(&["magistral-medium-2509"], "magistral-medium");
        same(&["o1", "o1-2024-12-17"], "o1");
        same(
            &["claude-opus-4", "claude-opus-4-20250514"],
            "claude-opus-4",
        );
        same(&["claude-3-5-sonnet-v2@20241022"], "claude-3-5-sonnet-v2");
        same(&["qwen3-235b-a22b"], "qwen3-235b-a22b");
        same(&["", "/", "@"], "");
    }

    #[test]
    fn names_of_any_length_are_read() {
        let many = 1_000_000;
        assert_eq!(normal_name(&format!("{}x1", "a.".repeat(many))), "x1");
        assert_eq!(normal_name(&format!("x1{}", "-001".repeat(many))), "x1");
        assert_eq!(normal_name(&format!("x1{}", "-latest".repeat(many))), "x1");
    }

    #[test]
    fn a_date_is_kept_beside() {
        let dated = |name: &str| ModelName::new(name).dated().map(str::to_owned);
        assert_eq!(
            dated("mistral/mistral-large-2411"),
            Some("mistral-large-2411".to_owned())
        );
        assert_eq!(
            dated("claude-opus-4@20250514"),
            Some("claude-opus-4-20250514".to_owned())
        );
        assert_eq!(dated("mistral-large"), None);
    }

    #[test]
    fn an_account_is_the_part_before_the_name() {
        let is_of = |name: &str, account: &str| ModelName::new(name).is_of(account);
        assert!(is_of("deepseek-ai/DeepSeek-V3.1", "deepseek-ai"));
        assert!(is_of("hosted_vllm/MistralAI/Mixtral:free", "mistralai"));
        assert!(!is_of("mistralai/proxy/mixtral", "mistralai"));
        assert!(!is_of("mixtral", "mistralai"));
        assert!(is_of("hf.co/bartowski/gemma", "*"));
        assert!(!is_of("gemma3:4b", "*"));
    }
}
