//! The rules of files that hold request bodies.

crate::diag::rules! {
    SYNTAX = Error "lint/syntax", "a file of request bodies is not valid JSON",
        "What stands there is not JSON, so no server reads it: the body, or the file that holds it, is cut off or was put together \
         by hand. Of JSON Lines each line is a document of its own; the others are judged.\n\n\
         * wrong: `{\"model\": \"gpt-5.6-luna\", \"messages\": [,]}`\n\
         * right: `{\"model\": \"gpt-5.6-luna\", \"messages\": []}`\n\n\
         Servers differ in what they make of a key that is there twice, so that is refused too.";
    NO_BODY = Error[lowerable] "lint/no-body", "a value of a linted file is not a request body",
        "`reqc lint` found nothing in it that any of the wire formats begins with: `messages`, `contents`, `input`, `prompt`, \
         `input_prefix`; neither in the value itself nor in what batches and logs wrap around a body (`body`, `params`, \
         `request`, `postData` and the like).\n\n\
         * wrong: `{\"id\": \"chatcmpl-1\", \"choices\": []}`, which is an answer\n\
         * right: `{\"model\": \"gpt-5.6-luna\", \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}`\n\n\
         Name the format with `--wire` if the value is meant as a body that lacks what it begins with. In a log, where lines without a \
         body are right, drop the finding with `--allow lint/no-body`.\n\n\
         Lines of a log that are text are skipped, with one warning for the whole file. In a line such as \
         `2027-01-31 INFO {\"model\": …}`, the object at its end is judged.";
    UNKNOWN_FORMAT = Error "lint/unknown-format", "the wire format of a body is not certain",
        "Several wire formats share what the body holds, and what is right in one is refused in another. A guess would be wrong \
         half of the time, so nothing is judged until somebody says which is meant.\n\n\
         * wrong: `reqc lint body.json`, with the body `{\"model\": \"ours\", \"messages\": []}`\n\
         * right: `reqc lint body.json --wire openai-chat`, or `--provider NAME`\n\n\
         The URL of a HAR entry or of a batch's line decides before the shape does; so do members that one format alone has, \
         and names of models that one provider alone serves.";
}
