package app

import (
	"errors"
	"strconv"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/commands/admin"
)

var errNewKeysUnknown = errors.New("argument must be 0 with this --store: only the store knows which keys are new")

func (a *app) limitClients() {
	a.storage.Memory.OnClients(a.engine.Clients.SetMaxMemory)
	a.engine.NewKeys.Limit(a.options.MaxNewKeysPerSecond)
}

func (t *tuning) maxNewKeys() admin.Setting {
	return admin.Setting{
		Name: "max-new-keys-per-second",
		Get:  func() string { return strconv.Itoa(t.app.engine.NewKeys.PerSec()) },
		Set: func(value string) (func(), error) {
			n, err := intBetween(value, 0, clients.MaxNewKeys)
			if err != nil {
				return nil, err
			}
			if n > 0 && t.app.storage.Remote != nil {
				return nil, errNewKeysUnknown
			}
			return func() { t.app.engine.NewKeys.Limit(n) }, nil
		},
	}
}
