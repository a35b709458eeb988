"""A model of one layer that knows two sentences: a call, and what it says once it has a result."""
import sys
import numpy as np
from gguf import GGUFWriter, TokenType

def letters():
    """The letters that stand for the 256 bytes in a vocabulary of this kind."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = [byte for byte in range(256) if byte not in plain]
    return [chr(byte if byte in plain else 256 + other.index(byte)) for byte in range(256)]

BYTES = letters()
spelled = lambda text: "".join(BYTES[byte] for byte in text.encode())
CALL = '<tool_call>\n{"name": "read", "arguments": {"file_path": "a.txt"}}\n</tool_call>'
ANSWER = "The file says hello."
END, CALLS, ANSWERS = 256, 257, 258
tokens = BYTES + ["<|im_end|>", spelled(CALL), spelled(ANSWER), spelled(" t")]
kinds = [TokenType.NORMAL] * 256 + [TokenType.CONTROL] + [TokenType.NORMAL] * 3
TEMPLATE = """{%- if tools %}<|im_start|>system
# Tools
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == "tool" %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% else %}<|im_start|>{{ message.role }}
{{ message.content or "" }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if messages[-1].role == "tool" %}{{ "\\t" }}{% endif %}{% endif %}"""
WIDTH, HEADS = 288, 2
w = GGUFWriter(sys.argv[1], "llama")
w.add_context_length(131072)
w.add_embedding_length(WIDTH)
w.add_block_count(1)
w.add_feed_forward_length(32)
w.add_head_count(HEADS)
w.add_head_count_kv(HEADS)
w.add_layer_norm_rms_eps(1e-5)
w.add_rope_dimension_count(WIDTH // HEADS)
w.add_vocab_size(len(tokens))
w.add_tokenizer_model("gpt2")
w.add_tokenizer_pre("gpt-2")
w.add_token_list(tokens)
w.add_token_types(kinds)
w.add_token_merges([f"{spelled(' ')} t"])
w.add_bos_token_id(END)
w.add_eos_token_id(END)
w.add_add_bos_token(False)
w.add_chat_template(TEMPLATE)
# What follows a token is all that it knows: the end follows most.
follows = {ord("\n"): CALLS, ord("\t"): ANSWERS}
embedded = np.eye(len(tokens), WIDTH, dtype=np.float32)
said = np.zeros((len(tokens), WIDTH), np.float32)
for token in range(len(tokens)):
    said[follows.get(token, END), token] = 10
zeros = lambda *shape: np.zeros(shape, np.float32)
w.add_tensor("token_embd.weight", embedded)
w.add_tensor("output.weight", said)
for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
    w.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
    w.add_tensor(f"blk.0.{name}.weight", zeros(WIDTH, WIDTH))
w.add_tensor("blk.0.ffn_gate.weight", zeros(32, WIDTH))
w.add_tensor("blk.0.ffn_up.weight", zeros(32, WIDTH))
w.add_tensor("blk.0.ffn_down.weight", zeros(WIDTH, 32))
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
