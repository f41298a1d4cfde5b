// Package rlspb has the messages of Envoy's rate limit service, version 3: those fields of them that
// cellserver reads or writes, under their names and numbers. Quotas are left out, as Envoy does not use them.
package rlspb

// The files below envoy/ name the messages; protoc and protoc-gen-go v1.36.12 made the Go code of them.
//go:generate protoc --go_out=. --go_opt=module=cellserver/internal/edge/rls/rlspb envoy/service/ratelimit/v3/rls.proto envoy/extensions/common/ratelimit/v3/ratelimit.proto envoy/config/core/v3/base.proto envoy/type/v3/ratelimit_unit.proto
