// Package xdspb has the messages of Envoy's aggregated discovery service, version 3: those fields of them
// that cellserver writes or reads, under their names and numbers.
package xdspb

// xds.proto has all messages in one package. Envoy has three, but the wire has no names of packages.
//go:generate sh generate.sh
