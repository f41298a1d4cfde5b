#!/bin/sh
# Makes the Go code of the messages below envoy/, without the module in it; needs protoc, and protoc-gen-go v1.36.12.
set -eu
protoc --go_out=. --go_opt=module=internal/edge/rls/rlspb $(find envoy -name '*.proto' | LC_ALL=C sort)
