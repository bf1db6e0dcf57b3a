//! The rules for building a body.

crate::diag::rules! {
    SYNTAX = Error "json/syntax", "a template does not render to valid JSON",
        "The output of a body template is parsed as strict JSON; only a comma directly before `]` or `}` is \
         tolerated. The finding points to the template text or tag that wrote the place where parsing fails: a \
         missing, doubled or leading comma, or a bracket that one branch opens and another does not close.\n\n\
         * wrong: `[{% if a %}{\"x\": 1}{% endif %}, {\"y\": 2}]`: a leading comma if `a` is false\n\
         * right: `[{% if a %}{\"x\": 1},{% endif %} {\"y\": 2},]`: each element has its own comma\n\n\
         If the place is a value (`{{ … }}`) inside quotes, the value contains a quote or a line break: write \
         `{{ tojson(value) }}` without quotes around it.";
    UNQUOTED = Error "json/unquoted", "a value is inserted into JSON without quotes or escapes",
        "A bare value, or a value inside handwritten quotes, is not a JSON string. Quotes around the tag are not \
         enough: a quote or a line break inside the text breaks the body in the middle of somebody's \
         conversation.\n\n\
         * wrong: `\"content\": {{ msg.content }}`\n\
         * wrong: `\"content\": \"{{ msg.content }}\"`\n\
         * right: `\"content\": {{ tojson(msg.content) }}`\n\n\
         `tojson` adds the quotes, escapes everything that JSON requires, and writes `none` as `null`; without \
         it, `none` is written as `None`. Bare booleans, lists and maps are written as JSON.";
    TWO_VALUES = Error "json/two-values", "a template renders more than one JSON value",
        "Each template string in `[body]` must render exactly one value. It cannot add a second one.\n\n\
         * wrong: `temperature = \"{{ 1 }}, \\\"top_p\\\": 1\"`\n\
         * right: two keys of `[body]`, each with its own value\n\n\
         A list of values needs brackets: `messages = \"[{% include \\\"openai/messages.jinja\\\" %}]\"`.";
    DUPLICATE_KEY = Error "json/duplicate-key", "a rendered object has the same key twice",
        "JSON does not define which of the two a provider uses, so neither is sent. The finding shows \
         both places.\n\n\
         Most often, two branches that should exclude each other both run: make the second an `{% else \
         %}`.";
    NUMBER = Error "json/number", "a rendered number is out of range",
        "Integers must fit in 64 bits, other numbers in a double: a parser would turn anything else into a \
         different number. A number with a leading zero, or without digits after the point, is not valid JSON at \
         all.\n\n\
         Long ids are strings: write `{{ tojson(id | string) }}`.";
    TOO_DEEP = Error "json/too-deep", "rendered JSON is nested too deeply",
        "The limit is 127 levels; most parsers reject more. Look for a macro that wraps its own output.";
}
