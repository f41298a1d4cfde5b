package main

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"cellserver/internal/clients"
	"cellserver/internal/commands/admin"
)

// clientMemory is what all clients may make the server hold together: bytes, or a percentage of the server's maximum.
// It is a flag's value.
type clientMemory struct {
	text    string // as it was set
	bytes   int64
	percent int64 // 0 where bytes count
}

// String implements pflag.Value.
func (m *clientMemory) String() string { return m.text }

// Type implements pflag.Value.
func (*clientMemory) Type() string { return "size" }

// Set implements pflag.Value. As in Redis, 1k is 1000 bytes and 1kb is 1024.
func (m *clientMemory) Set(text string) error {
	if digits, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || percent > 100 {
			return errors.New("argument must be a memory or percent value, such as 64mb or 25%")
		}
		*m = clientMemory{text: text, percent: int64(percent)}
		return nil
	}
	bytes, err := parseSize(text)
	if err != nil {
		return err
	}
	*m = clientMemory{text: text, bytes: bytes}
	return nil
}

// of returns the bytes that this is of a maximum; 0 is none of either.
func (m *clientMemory) of(maxBytes int64) int64 {
	if m.percent == 0 {
		return m.bytes
	}
	return maxBytes/100*m.percent + maxBytes%100*m.percent/100
}

func parseSize(text string) (bytes int64, err error) {
	digits := strings.TrimRight(strings.ToLower(text), "bgkm")
	unit, ok := map[string]int64{
		"": 1, "b": 1, "k": 1e3, "kb": 1 << 10, "m": 1e6, "mb": 1 << 20, "g": 1e9, "gb": 1 << 30,
	}[strings.ToLower(text[len(digits):])]
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || !ok || int64(n) > math.MaxInt64/unit {
		return 0, errors.New("argument must be a memory or percent value, such as 64mb or 25%")
	}
	return int64(n) * unit, nil
}

// maxMemory is what --maxmemory-clients is a percentage of; 0 for none.
func (a *app) maxMemory() int64 { return 0 }

// limitClientMemory bounds what the clients hold from now on.
func (a *app) limitClientMemory(m *clientMemory) {
	a.clientMemory.Store(m)
	a.engine.Clients.SetMaxMemory(m.of(a.maxMemory()))
}

// limitClients sets the limits of clients that are the engine's.
func (a *app) limitClients() {
	a.limitClientMemory(&a.options.maxMemoryClients)
	a.engine.NewKeys.Limit(a.options.maxNewKeysPerSecond)
}

func (a *app) maxMemoryClients() admin.Setting {
	return admin.Setting{
		Name: "maxmemory-clients",
		Get:  func() string { return a.clientMemory.Load().String() },
		Set: func(value string) (func(), error) {
			m := &clientMemory{}
			if err := m.Set(value); err != nil {
				return nil, err
			}
			return func() { a.limitClientMemory(m) }, nil
		},
	}
}

func (a *app) maxNewKeys() admin.Setting {
	return admin.Setting{
		Name: "max-new-keys-per-second",
		Get:  func() string { return strconv.Itoa(a.engine.NewKeys.PerSec()) },
		Set: func(value string) (func(), error) {
			n, err := intBetween(value, 0, clients.MaxNewKeys)
			if err != nil {
				return nil, err
			}
			return func() { a.engine.NewKeys.Limit(n) }, nil
		},
	}
}
