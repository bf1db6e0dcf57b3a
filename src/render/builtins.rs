//! The filters, tests and functions for all templates. This list is complete, and each entry
//! charges for the work that it does.
//!
//! The entries have Jinja's semantics. Jinja's other filters, tests and functions are left out
//! because no request needs them; [`instead`] suggests alternatives. Each entry has a single
//! implementation, which returns the value and, for kept content, its writer.

pub(super) mod texts;
mod tests;
pub(super) mod lists;

use minijinja::{Error, ErrorKind};

use super::analyse::Callable;
use super::objects::Apply;
use super::tracked::{Native, Tracked};
use super::writing::tojson;

/// The implementation of a test.
type Ask = for<'n, 'e> fn(&mut Native<'n, 'e>) -> Result<bool, Error>;

/// A filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filter {
    pub(super) name: &'static str,
    pub(super) apply: Apply,
    /// `true` if the filter passes its input on, or writes it as JSON, regardless of the content.
    pub(super) passes_on: bool,
}

/// A test.
#[derive(Debug, Clone, Copy)]
pub(super) struct Test {
    pub(super) name: &'static str,
    pub(super) ask: Ask,
    /// `true` if the test depends only on the kind of a value.
    pub(super) asks_kind: bool,
}

/// The functions for all templates, in addition to those for bodies and prompts.
pub(super) const FUNCTIONS: [(&str, Apply); 3] = [
    ("range", lists::range),
    ("dict", lists::dict),
    ("namespace", lists::namespace),
];

const fn filter(name: &'static str, apply: Apply) -> Filter {
    Filter {
        name,
        apply,
        passes_on: false,
    }
}

const fn passing(name: &'static str, apply: Apply) -> Filter {
    Filter {
        name,
        apply,
        passes_on: true,
    }
}

/// The filters, by name.
pub(super) const FILTERS: [Filter; 34] = [
    filter("abs", texts::abs),
    filter("capitalize", texts::capitalize),
    filter("count", lists::length),
    passing("d", texts::default),
    passing("default", texts::default),
    filter("first", lists::first),
    filter("float", texts::float),
    filter("indent", texts::indent),
    filter("int", texts::int),
    filter("items", lists::items),
    passing("join", lists::join),
    filter("last", lists::last),
    filter("length", lists::length),
    filter("lines", texts::lines),
    filter("list", lists::list),
    filter("lower", texts::lower),
    filter("map", lists::map),
    filter("max", lists::max),
    filter("min", lists::min),
    filter("reject", lists::reject),
    filter("rejectattr", lists::rejectattr),
    filter("replace", texts::replace),
    filter("reverse", lists::reverse),
    filter("round", texts::round),
    filter("select", lists::select),
    filter("selectattr", lists::selectattr),
    filter("sort", lists::sort),
    filter("split", texts::split),
    passing("string", texts::string),
    filter("title", texts::title),
    passing("tojson", tojson),
    filter("trim", texts::trim),
    filter("unique", lists::unique),
    filter("upper", texts::upper),
];

const fn test(name: &'static str, ask: Ask) -> Test {
    Test {
        name,
        ask,
        asks_kind: false,
    }
}

const fn kind(name: &'static str, ask: Ask) -> Test {
    Test {
        name,
        ask,
        asks_kind: true,
    }
}

/// The tests, by name.
pub(super) const TESTS: [Test; 35] = [
    test("!=", tests::ne),
    test("<", tests::lt),
    test("<=", tests::le),
    test("==", tests::eq),
    test(">", tests::gt),
    test(">=", tests::ge),
    kind("boolean", tests::boolean),
    kind("defined", tests::defined),
    test("divisibleby", tests::divisibleby),
    test("endingwith", tests::endingwith),
    test("eq", tests::eq),
    test("equalto", tests::eq),
    test("even", tests::even),
    kind("false", tests::is_false),
    kind("float", tests::float),
    test("ge", tests::ge),
    test("greaterthan", tests::gt),
    test("gt", tests::gt),
    test("in", tests::contains),
    kind("int", tests::integer),
    kind("integer", tests::integer),
    kind("iterable", tests::iterable),
    test("le", tests::le),
    test("lessthan", tests::lt),
    test("lt", tests::lt),
    kind("mapping", tests::mapping),
    test("ne", tests::ne),
    kind("none", tests::none),
    kind("number", tests::number),
    test("odd", tests::odd),
    kind("sequence", tests::sequence),
    test("startingwith", tests::startingwith),
    kind("string", tests::string),
    kind("true", tests::is_true),
    kind("undefined", tests::undefined),
];

impl Filter {
    /// Returns the filter with this name. For an unknown name, which the name checks have already
    /// reported, returns a filter that always fails.
    pub(super) fn named(name: &str) -> Filter {
        Filter::find(name).unwrap_or(filter("", unknown_filter))
    }

    fn find(name: &str) -> Option<Filter> {
        let at = FILTERS
            .binary_search_by(|filter| filter.name.cmp(name))
            .ok()?;
        Some(FILTERS[at])
    }
}

impl Test {
    /// Returns the test with this name. An unknown name, which the name checks report first, yields
    /// a test that fails.
    pub(super) fn named(name: &str) -> Test {
        Test::find(name).unwrap_or(test("", unknown_test))
    }

    fn find(name: &str) -> Option<Test> {
        let at = TESTS.binary_search_by(|test| test.name.cmp(name)).ok()?;
        Some(TESTS[at])
    }
}

fn unknown_filter(_: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    Err(Error::new(
        ErrorKind::UnknownFilter,
        "there is no such filter",
    ))
}

fn unknown_test(_: &mut Native<'_, '_>) -> Result<bool, Error> {
    Err(Error::new(ErrorKind::UnknownTest, "there is no such test"))
}

/// Returns the names of all filters.
pub(super) fn filter_names() -> impl Iterator<Item = &'static str> {
    FILTERS.iter().map(|filter| filter.name)
}

/// Returns the names of all tests.
pub(super) fn test_names() -> impl Iterator<Item = &'static str> {
    TESTS.iter().map(|test| test.name)
}

/// Returns the filter with this name.
///
/// # Errors
///
/// Returns an error if there is none.
fn filter_named(name: &str) -> Result<Filter, Error> {
    Filter::find(name).ok_or_else(|| Error::from(ErrorKind::UnknownFilter))
}

/// Returns the test with this name.
///
/// # Errors
///
/// Returns an error if there is none.
fn test_named(name: &str) -> Result<Test, Error> {
    Test::find(name).ok_or_else(|| Error::from(ErrorKind::UnknownTest))
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// Returns the alternative to a Jinja name that is not supported.
pub(super) fn instead(name: &str, what: Callable) -> Option<&'static str> {
    match what {
        Callable::Filter => instead_of_filter(name),
        Callable::Test => instead_of_test(name),
        Callable::Method => instead_of_method(name),
        Callable::Function => instead_of_function(name),
    }
}

fn instead_of_filter(name: &str) -> Option<&'static str> {
    Some(match name {
        "safe" | "e" | "escape" | "forceescape" => {
            "leave it out: templates do not escape output; `tojson` writes a value as JSON"
        }
        "pprint" | "format" | "filesizeformat" => {
            "join strings with `~`, and write values with `tojson`"
        }
        "json" | "to_json" | "jsonify" | "json_encode" | "dump" | "stringify" => {
            "write `value | tojson`"
        }
        "attr" => "write `value[name]`",
        "batch" | "slice" => "write a slice, such as `list[:10]`",
        "groupby" => "loop over the possible values, with `selectattr` inside",
        "dictsort" => "write `object | items`, which keeps the object's order",
        "chain" => "write `first + second`",
        "zip" => "loop over one list, and write `other[loop.index0]` for the other",
        "sum" => "add the values up in a loop, with a namespace",
        "bool" => "write `true if value else false`",
        "random" => "a request must be the same every time: choose one value yourself",
        _ => return None,
    })
}

fn instead_of_test(name: &str) -> Option<&'static str> {
    Some(match name {
        "safe" | "escaped" => "leave it out: templates do not escape output",
        "sameas" => "write `==`",
        "upper" => "write `value == value | upper`",
        "lower" => "write `value == value | lower`",
        "filter" | "test" => "`docs/templates.md` lists the available filters and tests",
        _ => return None,
    })
}

fn instead_of_method(name: &str) -> Option<&'static str> {
    Some(match name {
        "changed" => "keep the value of the previous iteration in a namespace, and compare",
        "cycle" => "write `[\"a\", \"b\"][loop.index0 % 2]`",
        _ => return None,
    })
}

fn instead_of_function(name: &str) -> Option<&'static str> {
    Some(match name {
        "debug" => "write `tojson(value)`",
        "cycler" => "write `[\"a\", \"b\"][loop.index0 % 2]`",
        "joiner" => {
            "write `{% if not loop.first %},{% endif %}`; a comma before `]` or `}` is dropped anyway"
        }
        "raise_exception" => "leave it out: `reqc` checks the rendered body itself",
        "strftime_now" => "a request must not depend on the clock",
        _ => return None,
    })
}
