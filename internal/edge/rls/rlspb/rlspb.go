// Package rlspb has the messages of Envoy's rate limit service, version 3: those fields of them that
// cellserver reads or writes, under their names and numbers. Quotas are left out, as Envoy does not use them.
package rlspb

// rls.proto has all messages; Envoy has those of other services in packages of their own, of which nothing
// is on the wire.
//go:generate sh generate.sh
