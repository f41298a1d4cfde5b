// Package rlspb has the messages of Envoy's rate limit service, version 3: those fields of them that
// cellserver reads or writes, under their names and numbers. Quotas are left out, as Envoy does not use them.
package rlspb

// rls.proto has all messages in one package. Envoy has four, but the wire has no names of packages.
//go:generate sh generate.sh
