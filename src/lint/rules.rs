//! The rules about files of request bodies.

crate::diag::rules! {
    SYNTAX = Error "lint/syntax", "a file of request bodies is not valid JSON",
        "The file is not JSON, so no server can read it: the body, or the file that contains it, is truncated or was assembled by \
         hand. In JSON Lines, each line is a separate document; the other lines are still checked.\n\n\
         * wrong: `{\"model\": \"gpt-5.6-luna\", \"messages\": [,]}`\n\
         * right: `{\"model\": \"gpt-5.6-luna\", \"messages\": []}`\n\n\
         Servers treat a repeated key differently, so that is an error too.";
    NO_BODY = Error[lowerable] "lint/no-body", "a value in a linted file is not a request body",
        "`reqc lint` found none of the fields that identify a wire format: `messages`, `contents`, `input`, `prompt`, \
         `input_prefix`. It looks in the value itself and in the fields in which batches and logs wrap a body (`body`, `params`, \
         `request`, `postData` and similar).\n\n\
         * wrong: `{\"id\": \"chatcmpl-1\", \"choices\": []}`, which is an answer\n\
         * right: `{\"model\": \"gpt-5.6-luna\", \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}`\n\n\
         If the value is a body without any of these fields, name its format with `--wire`. In a log, where lines without a body are \
         normal, suppress the finding with `--allow lint/no-body`. Session files of agents, which contain messages rather than requests, \
         are reported once per file: `reqc lint --session` reads them.\n\n\
         Log lines that are plain text are skipped, with one warning for the whole file. In a line such as `2027-01-31 INFO \
         {\"model\": …}`, the object at the end is checked.";
    UNKNOWN_FORMAT = Error "lint/unknown-format", "the wire format of a body is ambiguous",
        "The body fits several wire formats, and what is right in one is an error in another. A guess would often be wrong, so nothing is \
         checked until you name the format.\n\n\
         * wrong: `reqc lint body.json`, with the body `{\"model\": \"ours\", \"messages\": []}`\n\
         * right: `reqc lint body.json --wire openai-chat`, or `--provider NAME`\n\n\
         The URL of a HAR entry or a batch line takes precedence over the shape. Fields that only one format has, and models that only \
         one provider serves, resolve the ambiguity too.";
    UNSUPPORTED_FORMAT = Error[lowerable] "lint/unsupported-format", "a request has a format that is not supported",
        "Amazon Bedrock's Converse API (`/model/NAME/converse`, `converse-stream`, and the bodies of Amazon Nova), the prompt formats \
         of its models (`max_gen_len`, `inputText`), Cohere's chat API (`/v2/chat`), DashScope's own generation API (`/services/aigc/…`), Gemini's Interactions API (`/v1beta/interactions`), text \
         completions (`/v1/completions`, llama.cpp's `/completion`), and the native APIs of CLOVA Studio, Snowflake Cortex (`inference:complete`), watsonx.ai \
         (`/ml/v1/text/chat`) and Yandex Cloud have their own formats. They are recognised by the URL, or by the shape of the body: \
         content blocks without `type`, `inferenceConfig` and `toolSpec`; `citation_options`, or `documents` with a Command model; \
         `messages` inside `input`, beside `parameters`; `input` beside `system_instruction` or `generation_config`; `model_id` beside \
         `project_id`; `modelUri`; `prompt` with `n`, `echo` or `best_of`. `reqc` checks nothing else in such a body, because the rules of other \
         formats do not apply.\n\n\
         * wrong: `{\"messages\": [{\"role\": \"user\", \"content\": [{\"text\": \"Hello\"}]}], \"inferenceConfig\": {\"maxTokens\": 100}}`\n\
         * right: Claude's own format at `/model/NAME/invoke`, Cohere's \
         `/compatibility/v1/chat/completions`, and DashScope's `/compatible-mode/v1/chat/completions`\n\n\
         In a log that contains such requests among others, ignore the finding with `--allow lint/unsupported-format`. In HAR files, they \
         are ignored and counted, like all requests to other endpoints, unless there is nothing else in the file.";
    WRONG_PATH = Error[lowerable] "lint/wrong-path", "the request URL has a path that the server does not have",
        "The URL ends like an endpoint, but part of its path is repeated, the version is missing, or the host has the endpoint at \
         another path, so the server answers 404. Clients build the URL from a base URL and a path, and differ in which of the two contains the version:\n\n\
         * wrong: `https://api.anthropic.com/v1/v1/messages`\n\
         * wrong: `https://api.openai.com/chat/completions`\n\
         * right: `https://api.openai.com/v1/chat/completions`\n\n\
         Paths are compared with those of Anthropic, DeepSeek, Google, Groq, Mistral, OpenAI, OpenRouter, xAI, and Ollama at \
         `localhost:11434`; a misspelled path is reported too. At unknown hosts, only a repeated part is reported, as a warning: a gateway \
         may have such a path. The body is checked against the format of the right path.",
        seen "2026-11" {
            "Chanzhaoyu/chatgpt-web#737": "OpenAI: *Invalid URL (POST /chat/completions)*",
            "LinLin00000000/vercel-proxy-openai#2": "OpenAI: *Invalid URL (POST /v1/chat/completions/chat/completions)*",
            "fredrikburmester/streamystats#491": "Anthropic answers 404 at `/messages`",
            "CloudWaddie/LMArenaBridge#159": "a server answers 404 at `/api/v1/v1/messages`",
        };
}
