//! The rules for building a body.

crate::diag::rules! {
    SYNTAX = Error "json/syntax", "a template does not render to valid JSON",
        "The output of a body template is parsed as JSON, strictly; only a comma right before `]` or `}` is \
         forgiven. The finding stands at the template text or tag that wrote the place where parsing fails: a \
         missing, doubled or leading comma, a bracket that one branch opens and another does not close.\n\n\
         * wrong: `[{% if a %}{\"x\": 1}{% endif %}, {\"y\": 2}]`: a leading comma if `a` is false\n\
         * right: `[{% if a %}{\"x\": 1},{% endif %} {\"y\": 2},]`: each element brings its own comma\n\n\
         If the place is a value (`{{ … }}`) inside quotes, the value holds a quote or a line break: write `{{ \
         tojson(value) }}` without quotes around it.";
    UNQUOTED = Error "json/unquoted", "a value is spliced into JSON without quotes or escapes",
        "A bare value, or one inside quotes that were written by hand, is not a JSON string. Quotes around the tag \
         are not enough: a quote or a line break inside the text breaks the body, in the middle of somebody's \
         conversation.\n\n\
         * wrong: `\"content\": {{ msg.content }}`\n\
         * wrong: `\"content\": \"{{ msg.content }}\"`\n\
         * right: `\"content\": {{ tojson(msg.content) }}`\n\n\
         `tojson` adds the quotes and escapes everything that JSON needs escaped, and writes `none` as `null`; \
         a bare one is written as `None`. Bare booleans, lists and maps are written as JSON.";
    TWO_VALUES = Error "json/two-values", "a template renders more than one JSON value",
        "Each template string in `[body]` stands for exactly one value. A second one cannot be smuggled in.\n\n\
         * wrong: `temperature = \"{{ 1 }}, \\\"top_p\\\": 1\"`\n\
         * right: two keys of `[body]`, each with a value of its own\n\n\
         A list of several needs its brackets: `messages = \"[{% include \\\"openai/messages.jinja\\\" %}]\"`.";
    DUPLICATE_KEY = Error "json/duplicate-key", "a rendered object has the same key twice",
        "Which of the two a provider takes is not defined, so neither is sent. Both places are shown.\n\n\
         Most often two branches that should exclude each other both run: make the second an `{% else %}`.";
    NUMBER = Error "json/number", "a rendered number does not fit",
        "Integers must fit 64 bits, other numbers a double: whatever else a parser made of them would be another \
         number. A number with a leading zero, or without digits after the point, is not a JSON number at all.\n\n\
         Long ids are strings: write `{{ tojson(id | string) }}`.";
    TOO_DEEP = Error "json/too-deep", "rendered JSON is nested too deeply",
        "More than 127 levels; most parsers refuse that. Look for a macro that wraps its own output.";
}
