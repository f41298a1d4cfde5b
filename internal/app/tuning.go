package app

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"cellserver/internal/app/listen"
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
	return append(slices.Concat(t.changeable(), t.memorySettings(), durabilitySettings(o), t.storeSettings()),
		admin.Constant("aclfile", o.ACLFile),
		admin.Constant("burst-is-capacity", yesNo(o.BurstIsCapacity)),
		admin.Constant("databases", strconv.Itoa(o.Databases)),
		admin.Constant("enable-debug-command", o.DebugCommand),
		admin.Constant("io-threads", strconv.Itoa(o.IOThreads)),
		admin.Constant("limits-file", o.LimitsFile),
		admin.Constant("lua-time-limit", strconv.FormatInt(o.LuaTimeLimit.Milliseconds(), 10)),
		admin.Constant("max-args", strconv.Itoa(o.MaxArgs)),
		admin.Constant("max-command-bytes", strconv.Itoa(o.MaxCommandBytes)),
		admin.Constant("max-key-bytes", strconv.Itoa(o.MaxKeyBytes)),
		admin.Constant("proto-max-bulk-len", strconv.Itoa(o.MaxCommandBytes)),
		admin.Constant("unixsocket", o.UnixSocket),
		admin.Constant("unixsocketperm", strconv.FormatUint(uint64(o.SocketMode), 8)),
	)
}

func (t *tuning) changeable() []admin.Setting {
	return []admin.Setting{
		t.intLimit("max-output-bytes", 1<<10, func(l *server.Limits) *int { return &l.MaxOutputBytes }),
		t.maxClients(),
		t.intLimit("maxclients-per-address", 0, func(l *server.Limits) *int { return &l.MaxClientsPerAddress }),
		t.maxNewKeys(),
		t.secondsLimit("handshake-timeout", func(l *server.Limits) *time.Duration { return &l.HandshakeTimeout }),
		t.secondsLimit("input-timeout", func(l *server.Limits) *time.Duration { return &l.InputTimeout }),
		t.secondsLimit("output-timeout", func(l *server.Limits) *time.Duration { return &l.OutputTimeout }),
		t.secondsLimit("timeout", func(l *server.Limits) *time.Duration { return &l.IdleTimeout }),
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
			Set: func(value string) (func(), error) {
				return func() { t.app.access.setPassword(value) }, nil
			},
		},
	}
}

// maxClients is bounded by the operating system, too.
func (t *tuning) maxClients() admin.Setting {
	s := t.intLimit("maxclients", 1, func(l *server.Limits) *int { return &l.MaxClients })
	set := s.Set
	s.Set = func(value string) (func(), error) {
		apply, err := set(value)
		if err != nil {
			return nil, err
		}
		if n, err := strconv.Atoi(value); err == nil {
			if most := listen.FitMaxClients(n, t.app.options.IOThreads); most < n {
				return nil, errors.New("The operating system is not able to handle the specified number of clients, try with " + strconv.Itoa(most))
			}
		}
		return apply, nil
	}
	return s
}

// intLimit returns a setting for one of the server's integer limits.
func (t *tuning) intLimit(name string, least int, of func(*server.Limits) *int) admin.Setting {
	return admin.Setting{
		Name: name,
		Get: func() string {
			l := t.app.server.Limits()
			return strconv.Itoa(*of(&l))
		},
		Set: func(value string) (func(), error) {
			n, err := intBetween(value, least, 1<<30)
			if err != nil {
				return nil, err
			}
			return func() { t.changeLimits(func(l *server.Limits) { *of(l) = n }) }, nil
		},
	}
}

func intBetween(value string, least, most int) (int, error) {
	n, ok := resp.ParseInt([]byte(value))
	if !ok {
		return 0, errNotInt
	}
	if n < int64(least) || n > int64(most) {
		return 0, errors.New("argument must be between " + strconv.Itoa(least) + " and " + strconv.Itoa(most) + " inclusive")
	}
	return int(n), nil
}

// secondsLimit returns a setting for one of the server's timeouts, in whole seconds as in Redis.
func (t *tuning) secondsLimit(name string, of func(*server.Limits) *time.Duration) admin.Setting {
	return admin.Setting{
		Name: name,
		Get: func() string {
			l := t.app.server.Limits()
			return strconv.Itoa(int(of(&l).Seconds()))
		},
		Set: func(value string) (func(), error) {
			sec, ok := resp.ParseInt([]byte(value))
			if !ok {
				return nil, errNotInt
			}
			if sec < 0 || sec > 1<<31-1 {
				return nil, errors.New("argument must be between 0 and 2147483647 inclusive")
			}
			return func() { t.changeLimits(func(l *server.Limits) { *of(l) = time.Duration(sec) * time.Second }) }, nil
		},
	}
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
