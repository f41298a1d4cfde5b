package app

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/decide/clients"
	"cellserver/internal/edge/server"
	"cellserver/internal/redis/commands/admin"
	"cellserver/internal/resp"
)

var (
	errNotInt   = errors.New("argument couldn't be parsed into an integer")
	errNotYesNo = errors.New("argument must be 'yes' or 'no'")
)

// tuning holds the settings that can change while the server runs: by CONFIG SET, and by a reload. Each
// changes one at a time.
type tuning struct {
	app    *app
	loaded *settings.Options // as of the last reload or the start; used by reloads only
}

// settings returns the settings of CONFIG GET and CONFIG SET: Redis's that exist here, those that clients
// read when they connect, and our own flags.
func (t *tuning) settings() []admin.Setting {
	o := t.app.options
	all := slices.Concat(t.limitSettings(), t.accessSettings(), t.memorySettings(), durabilitySettings(o), t.storeSettings(), t.replicationSettings(),
		[]admin.Setting{
			t.maxNewKeys(),
			admin.Constant("burst-is-capacity", yesNo(o.BurstIsCapacity)),
			admin.Constant("databases", strconv.Itoa(o.Databases)), // a store has one
			admin.Constant("io-threads", strconv.Itoa(o.IOThreads)),
			admin.Constant("lua-time-limit", strconv.FormatInt(o.LuaTimeLimit.Milliseconds(), 10)),
			admin.Constant("proto-max-bulk-len", strconv.Itoa(o.MaxCommandBytes)),
			admin.Constant("unixsocketperm", strconv.FormatUint(uint64(o.SocketMode), 8)),
		})
	for _, flag := range []string{
		"aclfile", "enable-debug-command", "limits-file", "max-args", "max-command-bytes", "max-key-bytes", "unixsocket",
	} {
		all = append(all, admin.Constant(flag, o.Values[flag]))
	}
	return all
}

func (t *tuning) accessSettings() []admin.Setting {
	return []admin.Setting{
		{
			Name: "protected-mode",
			Get:  func() string { return yesNo(t.app.access.protectedMode.Load()) },
			Set: func(value string) (func(), error) {
				if value != "yes" && value != "no" {
					return nil, errNotYesNo
				}
				return func() { t.app.access.protectedMode.Store(value == "yes") }, nil
			},
		},
		{
			Name: "requirepass",
			Get:  func() string { return *t.app.access.password.Load() },
			Set:  func(value string) (func(), error) { return func() { t.app.access.setPassword(value) }, nil },
		},
	}
}

// limit is one of the server's limits, as CONFIG SET and a reload change it.
type limit struct {
	name             string
	minimum, maximum int // of CONFIG SET's value
	get              func(*server.Limits) int
	set              func(*server.Limits, int)
	reload           func(to, from *server.Limits)
}

func limits() []limit {
	return []limit{
		intLimit("max-output-bytes", 1<<10, func(l *server.Limits) *int { return &l.MaxOutputBytes }),
		intLimit("maxclients", 1, func(l *server.Limits) *int { return &l.MaxClients }),
		intLimit("maxclients-per-address", 0, func(l *server.Limits) *int { return &l.MaxClientsPerAddress }),
		secondsLimit("input-timeout", func(l *server.Limits) *time.Duration { return &l.InputTimeout }),
		secondsLimit("output-timeout", func(l *server.Limits) *time.Duration { return &l.OutputTimeout }),
		secondsLimit("timeout", func(l *server.Limits) *time.Duration { return &l.IdleTimeout }),
	}
}

func intLimit(name string, minimum int, of func(*server.Limits) *int) limit {
	return limit{
		name, minimum, 1 << 30,
		func(l *server.Limits) int { return *of(l) },
		func(l *server.Limits, n int) { *of(l) = n },
		func(to, from *server.Limits) { *of(to) = *of(from) },
	}
}

// secondsLimit returns a timeout, in CONFIG in whole seconds as in Redis.
func secondsLimit(name string, of func(*server.Limits) *time.Duration) limit {
	return limit{
		name, 0, 1<<31 - 1,
		func(l *server.Limits) int { return int(of(l).Seconds()) },
		func(l *server.Limits, n int) { *of(l) = time.Duration(n) * time.Second },
		func(to, from *server.Limits) { *of(to) = *of(from) },
	}
}

func (t *tuning) limitSettings() (all []admin.Setting) {
	for _, limit := range limits() {
		all = append(all, admin.Setting{
			Name: limit.name,
			Get: func() string {
				l := t.app.server.Limits()
				return strconv.Itoa(limit.get(&l))
			},
			Set: func(value string) (func(), error) {
				n, err := intBetween(value, limit.minimum, limit.maximum)
				if err == nil && limit.name == "maxclients" {
					if fitting := FitMaxClients(n, t.app.options.IOThreads); fitting < n {
						err = errors.New("The operating system is not able to handle the specified number of clients, try with " + strconv.Itoa(fitting))
					}
				}
				return func() { t.changeLimits(func(l *server.Limits) { limit.set(l, n) }) }, err
			},
		})
	}
	return all
}

func intBetween(value string, minimum, maximum int) (int, error) {
	n, ok := resp.ParseInt([]byte(value))
	if !ok {
		return 0, errNotInt
	}
	if n < int64(minimum) || n > int64(maximum) {
		return 0, errors.New("argument must be between " + strconv.Itoa(minimum) + " and " + strconv.Itoa(maximum) + " inclusive")
	}
	return int(n), nil
}

// changeLimits needs no lock: settings change one at a time.
func (t *tuning) changeLimits(change func(*server.Limits)) {
	l := t.app.server.Limits()
	change(&l)
	t.app.server.SetLimits(l)
}

func yesNo(on bool) string {
	if on {
		return "yes"
	}
	return "no"
}

// absolute returns an absolute path if possible; "" stays.
func absolute(path string) string {
	if from, err := filepath.Abs(path); path != "" && err == nil {
		return from
	}
	return path
}

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
