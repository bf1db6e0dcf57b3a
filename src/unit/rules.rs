//! The rules of making a body.

crate::diag::rules! {
    SYNTAX = Error "json/syntax", "a template does not render to valid JSON",
        "The output of a body template is parsed as JSON, strictly; only a comma right before `]` or `}` is forgiven. The \
         finding stands at the template text or tag that wrote the place where parsing fails: a missing, doubled or leading \
         comma, a bracket that one branch opens and another does not close.";
    UNQUOTED = Error "json/unquoted", "a value is spliced into JSON without quotes or escapes",
        "`\"content\": {{ msg.content }}` writes the bare text. Write `\"content\": {{ tojson(msg.content) }}`: it adds the \
         quotes and escapes everything that JSON needs escaped. Quotes around the tag are not enough: a quote or a line break \
         inside the text breaks the body, in the middle of somebody's conversation.";
    TWO_VALUES = Error "json/two-values", "a template renders more than one JSON value",
        "Each template string in `[body]` stands for exactly one value. `1, \"x\": 2` cannot smuggle in a second key: give it \
         a key of its own in `[body]`.";
    DUPLICATE_KEY = Error "json/duplicate-key", "a rendered object has the same key twice",
        "Which of the two a provider takes is not defined, so neither is sent.";
    NUMBER = Error "json/number", "a rendered number does not fit",
        "Integers must fit 64 bits, other numbers a double: whatever else a parser made of them would be another number.";
    TOO_DEEP = Error "json/too-deep", "rendered JSON is nested too deeply",
        "More than 127 levels; most parsers refuse that.";
}
