package app

import (
	"errors"
	"strconv"
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/base/flagvalue"
	"cellserver/internal/keep/memory"
	"cellserver/internal/redis/commands/admin"
	"cellserver/internal/store"
)

// storeSettings are the flags about the store, none of them with a password.
func (t *tuning) storeSettings() []admin.Setting {
	r := &t.app.options.Remote
	at := settings.MemoryStore
	if t.app.storage.Remote != nil {
		at = t.app.storage.Remote.Pool.String()
	}
	return []admin.Setting{
		admin.Constant("store", at),
		admin.Constant("store-password-file", r.PasswordFile),
		admin.Constant("store-sentinel-user", r.SentinelUser),
		admin.Constant("store-sentinel-password-file", r.SentinelPasswordFile),
		admin.Constant("store-tls-ca", r.TLSCA),
		admin.Constant("store-tls-cert", r.TLSCert),
		admin.Constant("store-tls-key", r.TLSKey),
		admin.Constant("store-tls-server-name", r.TLSServerName),
		admin.Constant("key-prefix", r.KeyPrefix),
		admin.Constant("store-timeout", strconv.FormatInt(r.Timeout.Milliseconds(), 10)),
		admin.Constant("store-wait", strconv.Itoa(r.Wait)),
		admin.Constant("on-store-error", r.OnError),
		admin.Constant("local-share", strconv.FormatFloat(r.LocalShare, 'g', -1, 64)),
	}
}

// durabilitySettings are Redis's, by what the flags come to, and the flags.
func durabilitySettings(o *settings.Options) []admin.Setting {
	appendFsync := "everysec"
	if o.SyncInterval == 0 {
		appendFsync = "always"
	} else if time.Duration(o.SyncInterval) == store.NoSync {
		appendFsync = "no"
	}
	return []admin.Setting{
		admin.Constant("appendfsync", appendFsync),
		admin.Constant("appendonly", yesNo(o.DataDir != "")),
		admin.Constant("data-dir", o.DataDir),
		admin.Constant("data-recover", yesNo(o.DataRecover)),
		admin.Constant("dir", absolute(o.DataDir)),
		admin.Constant("fsync-interval", o.SyncInterval.String()),
		admin.Constant("fsync-timeout", flagvalue.FormatDuration(o.SyncTimeout)),
		admin.Constant("save", ""),
	}
}

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
			"maxmemory-values", func(s memory.State) string { return s.Values.String() },
			func(to *memory.State, value string) error { return to.Values.SetAbove0(value) },
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
				if err := state.Check(); err != nil {
					return nil, errors.New("argument " + err.Error())
				}
				return func() { t.app.storage.Memory.Set(state) }, nil
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
