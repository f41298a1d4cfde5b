package app

import (
	"errors"
	"strconv"

	"cellserver/internal/keep/memory"
	"cellserver/internal/redis/commands/admin"
)

// memorySetting is one of Redis's maxmemory settings.
type memorySetting struct {
	name string
	get  func(memory.State) string
	read func(to *memory.State, value string) error
}

func allMemorySettings() []memorySetting {
	return []memorySetting{
		{
			"maxmemory", func(s memory.State) string { return strconv.FormatInt(s.MaxBytes, 10) },
			func(to *memory.State, value string) (err error) {
				to.MaxBytes, err = memory.Parse(value)
				return err
			},
		},
		{
			"maxmemory-clients", func(s memory.State) string { return s.Clients.String() },
			func(to *memory.State, value string) error { return to.Clients.Set(value) },
		},
		{
			"maxmemory-policy", func(s memory.State) string { return s.Policy.String() },
			func(to *memory.State, value string) (err error) {
				if to.Policy, err = memory.ParsePolicy(value); err != nil {
					return errors.New("argument: " + err.Error())
				}
				return nil
			},
		},
	}
}

func (t *tuning) memorySettings() []admin.Setting {
	var settings []admin.Setting
	for _, m := range allMemorySettings() {
		settings = append(settings, admin.Setting{
			Name: m.name,
			Get:  func() string { return m.get(t.app.storage.Memory.State()) },
			SetWith: func(value string, other func(string) (string, bool)) (func(), error) {
				state := t.app.storage.Memory.State()
				if err := m.read(&state, value); err != nil {
					return nil, err
				}
				setOthers(&state, m.name, other)
				if err := memory.Check(state.MaxBytes, state.Clients); err != nil {
					return nil, errors.New("argument " + err.Error())
				}
				return func() { t.app.storage.Memory.Set(state.MaxBytes, state.Policy, state.Clients) }, nil
			},
		})
	}
	return settings
}

// setOthers applies the valid values of the other memory settings in the same command; invalid ones are
// reported in their own turn.
func setOthers(to *memory.State, but string, other func(name string) (string, bool)) {
	for _, m := range allMemorySettings() {
		if value, ok := other(m.name); ok && m.name != but {
			if with := *to; m.read(&with, value) == nil {
				*to = with
			}
		}
	}
}
