"""llama.cpp's own server on loopback, with the model of the first argument. It ends when its standard input does."""
import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.port = 0
params.n_ctx = 131072
params.n_parallel = 1
params.use_jinja = True
params.warmup = False
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
