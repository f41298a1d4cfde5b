// Package rlspb has the messages of Envoy's rate limit service, version 3: those fields of them that
// cellserver reads or writes, under their names and numbers. Quotas are left out, as Envoy does not use them.
package rlspb

// The files below envoy/ name the messages; the Go code is made of them.
//go:generate sh generate.sh
