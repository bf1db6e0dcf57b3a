//! The price of a model's tokens.

use super::{Known, Origin, Reader, rules};
use crate::conversation::Usage;
use crate::diag::Diagnostic;

/// Every key in a `[family.price]` table.
pub const PRICE_KEYS: [&str; 8] = [
    "input",
    "output",
    "cache_read",
    "cache_write",
    "cache_write_hour",
    "most_input",
    "source",
    "seen",
];

pub(super) const PRICE: Known = Known::flat("a [family.price] table", &PRICE_KEYS);

/// Token prices, in US dollars per million tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    /// The price of uncached input.
    pub input: f64,
    /// The price of output, which includes reasoning.
    pub output: f64,
    /// The price of input read from a cache, if known.
    pub cache_read: Option<f64>,
    /// The price of input written to a cache for the server's default lifetime, if known.
    pub cache_write: Option<f64>,
    /// The price of input written to a cache for an hour, if known.
    pub cache_write_hour: Option<f64>,
    /// The maximum length of input for which these prices are valid, in tokens; `None` for any
    /// length.
    pub most_input: Option<u64>,
    /// The source of the prices. Missing parts are taken from the family.
    pub origin: Origin,
}

/// The cache lifetime that a request specifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The server's default.
    Default,
    /// One hour.
    Hour,
    /// Several different lifetimes, or a lifetime whose price is not known.
    Mixed,
}

impl Price {
    /// Returns the cost of an answer in US dollars; `None` if a required price is unknown. No token
    /// is charged twice.
    pub fn cost(&self, usage: &Usage, kept: Kept) -> Option<f64> {
        if self.most_input.is_some_and(|most| usage.input > most) {
            return None;
        }
        let write = match kept {
            Kept::Default => self.cache_write,
            Kept::Hour => self.cache_write_hour,
            Kept::Mixed => None,
        };
        let fresh = usage
            .input
            .checked_sub(usage.cache_read)?
            .checked_sub(usage.cache_write)?;
        let parts = [
            (fresh, Some(self.input)),
            (usage.output, Some(self.output)),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, write),
        ];
        let needed = parts.into_iter().filter(|(tokens, _)| *tokens > 0);
        #[expect(clippy::cast_precision_loss, reason = "token counts stay below 2^53")]
        let cost = needed
            .map(|(tokens, price)| Some(tokens as f64 * price?))
            .sum::<Option<f64>>()?;
        // The sum is in millionths. Rounding it to thousandths removes the errors of binary
        // fractions.
        Some((cost * 1e3).round() / 1e9)
    }

    /// Reads the price from its table; returns `None` if a finding was reported.
    pub(super) fn read(reader: &mut Reader<'_, '_>) -> Option<Price> {
        let table = reader.table("price")?;
        let mut reader = reader.inner(table.value);
        reader.only(&PRICE);
        reader.missing("a [family.price] table", table.span, &["input", "output"]);
        let (input, output) = (reader.amount("input"), reader.amount("output"));
        let (read, write) = (reader.amount("cache_read"), reader.amount("cache_write"));
        let hour = reader.amount("cache_write_hour");
        let most_input = reader.integer_within("most_input", 1..=i64::MAX);
        let origin = reader.origin();
        Some(Price {
            input: input??,
            output: output??,
            cache_read: read?,
            cache_write: write?,
            cache_write_hour: hour?,
            most_input: most_input?.and_then(|it| u64::try_from(it).ok()),
            origin,
        })
    }
}

impl Reader<'_, '_> {
    /// Reads a price; returns `None` if a finding was reported, `Some(None)` if the key is absent.
    #[expect(
        clippy::option_option,
        reason = "invalid, absent and present are three different cases"
    )]
    fn amount(&mut self, key: &str) -> Option<Option<f64>> {
        let amount = self.number(key)?;
        if amount.is_none_or(|amount| amount.is_finite() && amount >= 0.0) {
            return Some(amount);
        }
        let span = self
            .get(key)
            .map(|node| self.span(node))
            .expect("it was read");
        let finding = Diagnostic::new(
            &rules::INVALID_VALUE,
            span,
            format!("`{key}` is not a valid price"),
        );
        self.report(finding.help("write US dollars per million tokens: `3.0`"));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price {
        input: 5.0,
        output: 25.0,
        cache_read: Some(0.5),
        cache_write: Some(6.25),
        cache_write_hour: Some(10.0),
        most_input: Some(200_000),
        origin: Origin {
            source: None,
            seen: None,
        },
    };

    const USAGE: Usage = Usage {
        input: 10_000,
        output: 100,
        cache_read: 7_000,
        cache_write: 2_000,
        reasoning: 50,
    };

    #[test]
    fn each_token_counts_once() {
        // In millionths: 1000 * 5 + 100 * 25 + 7000 * 0.5 + 2000 * 6.25.
        assert_eq!(PRICE.cost(&USAGE, Kept::Default), Some(0.0235));
        assert_eq!(PRICE.cost(&USAGE, Kept::Hour), Some(0.031));
        assert_eq!(
            PRICE.cost(
                &Usage {
                    input: 1,
                    ..Usage::default()
                },
                Kept::Default
            ),
            Some(0.000_005)
        );
    }

    #[test]
    fn nothing_is_guessed() {
        assert_eq!(PRICE.cost(&USAGE, Kept::Mixed), None);
        let plain = Price {
            cache_read: None,
            cache_write: None,
            ..PRICE
        };
        assert_eq!(plain.cost(&USAGE, Kept::Default), None);
        let without = Usage {
            cache_read: 0,
            cache_write: 0,
            ..USAGE
        };
        assert_eq!(plain.cost(&without, Kept::Mixed), Some(0.0525));
        assert_eq!(
            PRICE.cost(
                &Usage {
                    input: 200_001,
                    ..without
                },
                Kept::Default
            ),
            None
        );
        assert_eq!(
            PRICE.cost(&Usage { input: 10, ..USAGE }, Kept::Default),
            None,
            "counters that cannot be"
        );
    }
}
