#!/usr/bin/env python3
"""Writes a model for llama.cpp that is good for nothing but tests: two layers of random numbers, under a megabyte.

Usage: make-tiny-gguf.py OUT [--calls-tools]      (needs the PyPI packages gguf and numpy)

It answers with common English words, at any length, and stops now and then. With --calls-tools it begins every answer with
the token `<tool_call>`; the server's grammar for `tool_choice: required` makes a call of the rest.

How: the first number of every token's vector is the same, and no layer changes it. So the first column of the output matrix
is a bias: it says how likely a token is, whatever came before; the random rest only makes for variety.
"""

import argparse

import gguf
import numpy

WIDTH, FEED_FORWARD, LAYERS, HEADS, CONTEXT = 64, 128, 2, 4, 8192

WORDS = """a all and any are as at away back bird blue boat but by came can day door down each far find first fish for from
gave go good green had has have here high hill home house in into is it know lake last left light like long look made many
more much near new night no not now of off old on one open or other our out over rain red right river road said sea see she
sky small so some song stone sun that the then there they thing this time to tree two under up warm was water way we went
what when where white who wind with word you""".split()

CHAT = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content or '' }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

# The logits of each kind of token.
NEVER, LETTER, WORD, END = -40.0, 0.0, 4.0, 3.0

# The value of the constant after the norm before the output.
CONSTANT = 2.0


class Vocabulary:
    """Tokens in order, each with its kind, score and bias."""

    def __init__(self, calls_tools):
        self.texts, self.kinds, self.scores, self.biases = [], [], [], []
        kind = gguf.TokenType
        self.unknown = self.add("<unk>", kind.UNKNOWN)
        self.start = self.add("<s>", kind.CONTROL)
        self.end = self.add("</s>", kind.CONTROL)
        for byte in range(256):
            self.add(f"<0x{byte:02X}>", kind.BYTE)
        self.add("<|im_start|>", kind.CONTROL)
        self.end_of_turn = self.add("<|im_end|>", kind.CONTROL, bias=20.0 if calls_tools else END)
        self.infill = {name: self.add(f"<|fim_{name}|>", kind.CONTROL) for name in ("prefix", "suffix", "middle")}
        self.add("<tool_call>\n", kind.USER_DEFINED, bias=12.0 if calls_tools else NEVER)
        self.add("</tool_call>", kind.USER_DEFINED)
        for letter in ["\u2581", *map(chr, range(33, 127)), "\n"]:
            self.add(letter, kind.NORMAL, score=-1000.0, bias=LETTER)
        for rank, word in enumerate(WORDS, 1):
            self.add(f"\u2581{word}", kind.NORMAL, score=-float(rank), bias=WORD)
        while len(self.texts) % 32:
            self.add(f"<|unused_{len(self.texts)}|>", kind.CONTROL)

    def add(self, text, kind, score=0.0, bias=NEVER):
        """Adds a token and gives its number."""
        self.texts.append(text)
        self.kinds.append(int(kind))
        self.scores.append(score)
        self.biases.append(bias)
        return len(self.texts) - 1


def write_settings(writer, words):
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(words.texts))
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text.encode() for text in words.texts])
    writer.add_token_scores(words.scores)
    writer.add_token_types(words.kinds)
    writer.add_bos_token_id(words.start)
    writer.add_eos_token_id(words.end)
    writer.add_eot_token_id(words.end_of_turn)
    writer.add_unk_token_id(words.unknown)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    for name, short in (("prefix", "pre"), ("suffix", "suf"), ("middle", "mid")):
        writer.add_uint32(f"tokenizer.ggml.fim_{short}_token_id", words.infill[name])
    writer.add_chat_template(CHAT)


def write_weights(writer, words):
    dice = numpy.random.default_rng(20)

    def random(rows, columns, size=0.08):
        return (dice.standard_normal((rows, columns)) * size).astype(numpy.float32)

    def keeping(matrix):
        """A matrix that adds nothing to the constant."""
        matrix[0] = 0.0
        return matrix

    tokens = random(len(words.texts), WIDTH, 1.0)
    tokens[:, 0] = 4.0
    output = random(len(words.texts), WIDTH, 0.25)
    output[:, 0] = numpy.array(words.biases, numpy.float32) / CONSTANT
    ones = numpy.ones(WIDTH, numpy.float32)
    writer.add_tensor("token_embd.weight", tokens)
    writer.add_tensor("output_norm.weight", ones)
    writer.add_tensor("output.weight", output)
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        writer.add_tensor(f"{at}attn_norm.weight", ones)
        writer.add_tensor(f"{at}ffn_norm.weight", ones)
        for name in ("attn_q", "attn_k", "attn_v"):
            writer.add_tensor(f"{at}{name}.weight", random(WIDTH, WIDTH))
        writer.add_tensor(f"{at}attn_output.weight", keeping(random(WIDTH, WIDTH)))
        writer.add_tensor(f"{at}ffn_gate.weight", random(FEED_FORWARD, WIDTH))
        writer.add_tensor(f"{at}ffn_up.weight", random(FEED_FORWARD, WIDTH))
        writer.add_tensor(f"{at}ffn_down.weight", keeping(random(WIDTH, FEED_FORWARD)))


def main():
    parser = argparse.ArgumentParser(description="Writes a tiny random model for llama.cpp.")
    parser.add_argument("out")
    parser.add_argument("--calls-tools", action="store_true")
    arguments = parser.parse_args()
    words = Vocabulary(arguments.calls_tools)
    writer = gguf.GGUFWriter(arguments.out, "llama")
    write_settings(writer, words)
    write_weights(writer, words)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
