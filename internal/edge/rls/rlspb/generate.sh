#!/bin/sh
# Makes the Go code of rls.proto, without the module in it; needs protoc-gen-go v1.36.12, and buf 1.75, as protoc has
# editions only from version 27 on, which distributions lack.
set -eu
buf generate --template '{"version": "v2", "plugins": [{"local": "protoc-gen-go", "out": ".", "opt": "module=internal/edge/rls/rlspb"}]}'
