// Package configpb has the messages in which envoyproxy/ratelimit's limits come over xDS, under their names
// and numbers.
package configpb

//go:generate sh generate.sh
