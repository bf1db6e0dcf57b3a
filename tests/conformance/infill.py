"""The request of llama.cpp's `POST /infill`, which has no official SDK.

Written by hand after the server's own documentation and source: ggml-org/llama.cpp, tools/server/README.md
(`POST /infill`, `POST /completion`) and tools/server/server-schema.cpp (names and aliases of the options).
"""

from typing import Any, Literal, Union

import typing_extensions as te

Extra = te.TypedDict("Extra", {"text": te.Required[str], "filename": str}, total=False)
Adapter = te.TypedDict("Adapter", {"id": int, "scale": float})
StreamOptions = te.TypedDict("StreamOptions", {"include_usage": bool}, total=False)

STRINGS = ("prompt", "model", "grammar")
FLAGS = (
    "stream", "cache_prompt", "return_tokens", "return_progress", "timings_per_token", "verbose",
    "post_sampling_probs", "backend_sampling", "ignore_eos", "grammar_lazy",
)  # fmt: skip
INTEGERS = (
    "n_predict", "max_tokens", "max_completion_tokens", "n_indent", "t_max_predict_ms", "n_keep", "n_discard",
    "n_cmpl", "n", "n_cache_reuse", "id_slot", "sse_ping_interval", "top_k", "repeat_last_n", "dry_allowed_length",
    "dry_penalty_last_n", "seed", "min_keep", "n_probs", "logprobs",
)  # fmt: skip
NUMBERS = (
    "temperature", "dynatemp_range", "dynatemp_exponent", "top_p", "min_p", "top_n_sigma", "typical_p",
    "xtc_probability", "xtc_threshold", "repeat_penalty", "presence_penalty", "frequency_penalty",
    "dry_multiplier", "dry_base", "mirostat_tau", "mirostat_eta", "adaptive_target", "adaptive_decay",
)  # fmt: skip

INFILL = {
    "input_prefix": te.Required[str],
    "input_suffix": te.Required[str],
    "input_extra": list[Extra],
    "stream_options": StreamOptions,
    "stop": Union[str, list[str]],
    "samplers": Union[str, list[str]],
    "response_fields": list[str],
    "dry_sequence_breakers": list[str],
    "preserved_tokens": list[str],
    "mirostat": Literal[0, 1, 2],
    "logit_bias": Union[list[Any], dict[str, Any]],
    "json_schema": dict[str, Any],
    "grammar_triggers": list[dict[str, Any]],
    "lora": list[Adapter],
}
INFILL |= {name: str for name in STRINGS} | {name: bool for name in FLAGS}
INFILL |= {name: int for name in INTEGERS} | {name: float for name in NUMBERS}
