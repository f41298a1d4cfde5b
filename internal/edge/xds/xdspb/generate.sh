#!/bin/sh
# Makes the Go code of xds.proto, as rlspb/generate.sh does.
set -eu
buf generate --template '{"version": "v2", "plugins": [{"local": "protoc-gen-go", "out": ".", "opt": "module=internal/edge/xds/xdspb"}]}'
