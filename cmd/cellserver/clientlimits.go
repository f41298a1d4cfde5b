package main

import (
	"strconv"

	"cellserver/internal/clients"
	"cellserver/internal/commands/admin"
)

// limitClients sets the limits of clients that are the engine's.
func (a *app) limitClients() {
	a.memory.OnClients(a.engine.Clients.SetMaxMemory)
	a.engine.NewKeys.Limit(a.options.maxNewKeysPerSecond)
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
