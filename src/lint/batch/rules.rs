//! The rules about batches: the lines around the bodies.

crate::diag::rules! {
    ID = Error[lowerable] "lint/batch-id", "a request in a batch has no usable id",
        "Batch services return results in any order. The id that you give each request connects it to its result; without an id, the \
         service rejects the batch.\n\n\
         | service | key | form |\n\
         | --- | --- | --- |\n\
         | OpenAI, Azure | `custom_id` | a string |\n\
         | Anthropic | `custom_id` | 1 to 64 letters, digits, `_` and `-` |\n\
         | Mistral | `custom_id` | a string; its specification makes it optional, so a warning |\n\
         | Gemini | `key` | a string; optional on Vertex AI, so a warning |\n\
         | Amazon Bedrock | `recordId` | optional |\n\n\
         * wrong: `{\"customId\": \"a\", \"method\": \"POST\", …}`\n\
         * wrong, for Anthropic: `{\"custom_id\": \"user/17\", \"params\": …}`\n\
         * right: `{\"custom_id\": \"user-17\", \"params\": …}`\n\n\
         A line without an id is treated as part of a batch if another line of the file has one, or if its only members are `method`, \
         `url` and `body`, with a path as `url`. Otherwise it is treated as a log line.",
        seen "2026-11" {
            "https://platform.claude.com/docs/en/api/csharp/messages/batches.md":
                "Anthropic requires `custom_id` to match `^[a-zA-Z0-9_-]{1,64}$`",
            "anthropics/anthropic-sdk-python#984":
                "Anthropic: *custom_id: String should have at most 64 characters*",
            "https://developers.openai.com/api/docs/guides/batch":
                "OpenAI requires a `custom_id` in each request",
            "https://docs.mistral.ai/openapi.yaml": "Mistral accepts a `custom_id` of null",
            "https://ai.google.dev/gemini-api/docs/batch-api":
                "Gemini identifies each request by `key`",
            "https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference-data":
                "Bedrock adds a missing `recordId`",
        };
    DUPLICATE_ID = Error[lowerable] "lint/batch-duplicate-id", "two requests in a batch have the same id",
        "Ids must be unique within a batch: OpenAI, Azure and Anthropic reject the whole batch, and others return results that cannot be \
         told apart. For Gemini, this is a warning.\n\n\
         * wrong: `\"custom_id\": \"request-1\"` in two lines\n\
         * right: the number of the line in each id\n\n\
         `reqc` remembers hashes of up to 1,000,000 ids per file, more than any service accepts.",
        seen "2026-11" {
            "https://developers.openai.com/api/docs/guides/batch":
                "OpenAI requires a unique `custom_id`",
            "https://learn.microsoft.com/en-us/azure/ai-foundry/openai/how-to/batch":
                "Azure rejects repeated ids with `duplicate_custom_id`",
            "https://platform.claude.com/docs/en/api/csharp/messages/batches.md":
                "Anthropic requires ids that are unique within the batch",
            "https://docs.mistral.ai/studio-api/batch-processing":
                "Mistral asks for a unique `custom_id`",
            "sgl-project/sglang#1415": "SGLang never finishes a batch with repeated ids",
        };
    REQUEST = Error[lowerable] "lint/batch-request", "a batch line is not in the format that the service accepts",
        "Each service has its own form:\n\n\
         * OpenAI, Azure: `{\"custom_id\": …, \"method\": \"POST\", \"url\": \"/v1/chat/completions\", \"body\": {…}}`. Azure's paths have \
         no `/v1`\n\
         * Anthropic: `{\"custom_id\": …, \"params\": {…}}`, all of them in a list `requests`\n\
         * Mistral: `{\"custom_id\": …, \"body\": {…}}`\n\
         * Gemini: `{\"key\": …, \"request\": {…}}`\n\
         * Amazon Bedrock: `{\"recordId\": …, \"modelInput\": {…}}`\n\n\
         `url` is a path, `method` is always `POST`, and the request is an object. OpenAI's batches go to `/v1/responses`, \
         `/v1/chat/completions`, `/v1/embeddings`, `/v1/completions`, `/v1/moderations`, `/v1/images/generations`, `/v1/images/edits` and \
         `/v1/videos`. Services that only resemble OpenAI's may differ, so there a wrong method or path is a warning.\n\n\
         * wrong: `\"url\": \"https://api.openai.com/v1/chat/completions\"`\n\
         * right: `\"url\": \"/v1/chat/completions\"`",
        seen "2026-11" {
            "https://github.com/openai/openai-openapi":
                "OpenAI's `CreateBatchRequest.endpoint` lists the endpoints",
            "https://developers.openai.com/api/docs/guides/batch":
                "OpenAI documents the format of a line",
            "567-labs/instructor#1120": "OpenAI: *missing* `method`, `url` and `body`, with `params` instead",
            "openai/openai-python#2497": "OpenAI: a `url` without the first slash does not match",
            "https://learn.microsoft.com/en-us/azure/ai-foundry/openai/how-to/batch":
                "Azure's endpoint is `/chat/completions`, without `/v1`",
            "https://platform.claude.com/docs/en/api/csharp/messages/batches.md":
                "Anthropic requires `custom_id` and `params`",
            "https://docs.mistral.ai/openapi.yaml": "Mistral requires `body`",
            "https://ai.google.dev/gemini-api/docs/batch-api":
                "Gemini documents the format of a line",
            "https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference-data":
                "Bedrock documents the format of a line",
        };
    STREAM = Error[lowerable] "lint/batch-stream", "a request in a batch asks for a stream",
        "A batch returns complete answers in a file. OpenAI, Azure and Anthropic reject requests with `stream: true`; for other \
         services this is a warning.\n\n\
         * wrong: `\"body\": {\"stream\": true, …}`\n\
         * right: the same without `stream` and `stream_options`",
        seen "2026-11" {
            "https://developers.openai.com/api/docs/guides/batch": "OpenAI: *rejects requests that set stream=true*",
            "pkg:pypi/anthropic@2.12#types/messages/batch_create_params.py":
                "Anthropic's batches contain `MessageCreateParamsNonStreaming`",
        };
    MIXED = Error[lowerable] "lint/batch-mixed", "the requests in a batch go to different endpoints or models",
        "An input file for OpenAI or Azure can use only one endpoint and one model. The service compares each line with the endpoint that \
         the batch is created for, and rejects the file if one differs. Every service rejects a file whose lines are written for \
         different services. For services that only resemble OpenAI's this is a warning; Anthropic and Mistral accept different models in \
         one file.\n\n\
         * wrong: `gpt-5.1` in the first line, `gpt-5-mini` in the second\n\
         * right: a file for each model",
        seen "2026-11" {
            "https://developers.openai.com/api/docs/guides/batch":
                "OpenAI accepts requests to only one model in an input file",
            "https://github.com/openai/openai-openapi":
                "OpenAI uses one endpoint for all requests in the batch",
            "https://learn.microsoft.com/en-us/azure/ai-foundry/openai/how-to/batch":
                "Azure rejects them with `url_mismatch` and `model_mismatch`",
        };
    LIMIT = Error[lowerable] "lint/batch-limit", "a batch has more requests or bytes than the service accepts",
        "| service | requests | size |\n\
         | --- | --- | --- |\n\
         | OpenAI | 50,000 | 200 MB |\n\
         | Azure | 100,000 | 200 MB |\n\
         | Anthropic | 100,000 | 256 MB |\n\
         | Mistral | 1,000,000 | |\n\
         | Gemini | | 2 GB |\n\n\
         The finding points to the first request beyond the limit. Amazon Bedrock's limits depend on the model, and services that \
         only resemble OpenAI's have their own limits: neither is checked.\n\n\
         * wrong: 60,000 lines in one file for OpenAI\n\
         * right: two files of 30,000 lines",
        seen "2026-11" {
            "https://github.com/openai/openai-openapi": "OpenAI accepts at most 50,000 requests and 200 MB",
            "https://learn.microsoft.com/en-us/azure/ai-foundry/openai/how-to/batch":
                "Azure accepts at most 100,000 requests and 200 MB",
            "https://platform.claude.com/docs/en/api/csharp/messages/batches.md":
                "Anthropic accepts at most 100,000 requests (`maxItems`)",
            "https://platform.claude.com/docs/en/build-with-claude/batch-processing":
                "Anthropic accepts at most 256 MB",
            "https://docs.mistral.ai/capabilities/batch": "Mistral accepts up to 1M requests",
            "https://ai.google.dev/gemini-api/docs/batch-api": "Gemini accepts files of up to 2 GB",
        };
}
