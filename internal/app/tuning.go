package app

import (
	"errors"
	"math"
	"path/filepath"
	"strconv"
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/decide/clients"
	"cellserver/internal/edge/server"
	"cellserver/internal/keep/memory"
	"cellserver/internal/keep/replication"
	"cellserver/internal/redis/commands/admin"
	"cellserver/internal/store"
)

// tuning holds the settings that can change while the server runs: by CONFIG SET, and by a reload. Each
// changes one at a time.
type tuning struct {
	app    *app
	loaded *settings.Options // as of the last reload or the start; used by reloads only
}

// tunable is a setting that CONFIG SET and a reload change.
type tunable struct {
	admin.Setting
	flag   string // if it has another name
	reload func(next *settings.Options)
}

func (t *tuning) tunables() []tunable {
	limits := tuned[server.Limits]{func() server.Limits { return t.app.server.Limits() }, t.changeLimits, func(next *settings.Options) server.Limits {
		l := serverLimits(next)
		l.MaxClients = FitMaxClients(l.MaxClients, t.app.options.IOThreads)
		return l
	}}
	return append([]tunable{
		{
			Setting: admin.Setting{
				Name: "protected-mode",
				Get:  func() string { return yesNo(t.app.access.protectedMode.Load()) },
				Set: func(value string, _ admin.Others) (func(), error) {
					if value != "yes" && value != "no" {
						return nil, errors.New("argument must be 'yes' or 'no'")
					}
					return func() { t.app.access.protectedMode.Store(value == "yes") }, nil
				},
			},
			reload: func(next *settings.Options) { t.app.access.protectedMode.Store(next.ProtectedMode) },
		},
		{
			Setting: admin.Integer("max-new-keys-per-second", 0, clients.MaxNewKeys,
				func() int { return t.app.engine.NewKeys.PerSec() }, func(n int) { t.app.engine.NewKeys.Limit(n) }, t.checkNewKeys),
			reload: func(next *settings.Options) { t.app.engine.NewKeys.Limit(next.MaxNewKeysPerSecond) },
		},
		number(limits, "max-output-bytes", 1<<10, 1<<30, 1, func(l *server.Limits) *int { return &l.MaxOutputBytes }),
		number(limits, "maxclients", 1, 1<<30, 1, func(l *server.Limits) *int { return &l.MaxClients }, t.checkMaxClients),
		number(limits, "maxclients-per-address", 0, 1<<30, 1, func(l *server.Limits) *int { return &l.MaxClientsPerAddress }),
		number(limits, "input-timeout", 0, math.MaxInt32, time.Second, func(l *server.Limits) *time.Duration { return &l.InputTimeout }),
		number(limits, "output-timeout", 0, math.MaxInt32, time.Second, func(l *server.Limits) *time.Duration { return &l.OutputTimeout }),
		number(limits, "timeout", 0, math.MaxInt32, time.Second, func(l *server.Limits) *time.Duration { return &l.IdleTimeout }),
	}, t.replicationTunables()...)
}

func (t *tuning) checkNewKeys(n int) error {
	if n > 0 && t.app.storage.Remote != nil {
		return errors.New("argument must be 0 with this --store: only the store knows which keys are new")
	}
	return nil
}

func (t *tuning) checkMaxClients(n int) error {
	if fitting := FitMaxClients(n, t.app.options.IOThreads); fitting < n {
		return errors.New("The operating system is not able to handle the specified number of clients, try with " + strconv.Itoa(fitting))
	}
	return nil
}

// changeLimits needs no lock: settings change one at a time.
func (t *tuning) changeLimits(change func(*server.Limits)) {
	l := t.app.server.Limits()
	change(&l)
	t.app.server.SetLimits(l)
}

// replicationTunables have Redis's names in CONFIG.
func (t *tuning) replicationTunables() []tunable {
	n := t.app.replication
	if n == nil {
		return nil
	}
	in := tuned[replication.Settings]{n.Settings, n.Change, func(next *settings.Options) replication.Settings { return next.Replication.Settings() }}
	lag := number(in, "min-replicas-max-lag", 1, math.MaxInt32, time.Second, func(s *replication.Settings) *time.Duration { return &s.MaxLag })
	lag.Get = func() string { return strconv.Itoa(int(n.Settings().MaxLag.Round(time.Second).Seconds())) }
	backlog := number(in, "repl-backlog-size", 64<<10, 1<<30, 1, func(s *replication.Settings) *int64 { return &s.Backlog })
	backlog.flag = "repl-backlog"
	return []tunable{
		lag, backlog,
		number(in, "replica-priority", 0, math.MaxInt32, 1, func(s *replication.Settings) *int { return &s.Priority }),
		number(in, "min-replicas-to-write", 0, 1000, 1, func(s *replication.Settings) *int { return &s.MinReplicas }),
	}
}

// tuned has the values of several tunables: as they are, to change, and by the options of a reload.
type tuned[S any] struct {
	now    func() S
	change func(func(*S))
	next   func(*settings.Options) S
}

// number returns the tunable of one of the values, in whole units.
func number[S any, T ~int | ~int64](
	in tuned[S], name string, minimum, maximum int, unit T, of func(*S) *T, check ...func(n int) error,
) tunable {
	set := func(to T) { in.change(func(s *S) { *of(s) = to }) }
	get := func() int {
		s := in.now()
		return int(*of(&s) / unit)
	}
	return tunable{
		Setting: admin.Integer(name, minimum, maximum, get, func(n int) { set(T(n) * unit) }, check...),
		reload: func(next *settings.Options) {
			s := in.next(next)
			set(*of(&s))
		},
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

// set applies a value and the valid ones of the other memory settings in the same command; invalid ones are
// reported in their own turn.
func (m *memorySetting) set(bound *memory.Bound, value string, other admin.Others) (func(), error) {
	state := bound.State()
	if err := m.read(&state, value); err != nil {
		return nil, err
	}
	for _, o := range allMemorySettings() {
		if value, ok := other(o.name); ok && o.name != m.name {
			if with := state; o.read(&with, value) == nil {
				state = with
			}
		}
	}
	if err := state.Check(); err != nil {
		return nil, errors.New("argument " + err.Error())
	}
	return func() { bound.Set(state) }, nil
}

// settings returns the settings of CONFIG GET and CONFIG SET: Redis's that exist here, those that clients
// read when they connect, and our own flags.
func (t *tuning) settings() (all []admin.Setting) {
	for _, s := range t.tunables() {
		all = append(all, s.Setting)
	}
	for _, m := range allMemorySettings() {
		all = append(all, admin.Setting{
			Name: m.name,
			Get:  func() string { return m.get(t.app.storage.Memory.State()) },
			Set: func(value string, other admin.Others) (func(), error) {
				return m.set(t.app.storage.Memory, value, other)
			},
		})
	}
	for _, flag := range []string{
		"aclfile", "data-dir", "enable-debug-command", "fsync-interval", "fsync-timeout", "key-prefix", "limits-file", "local-share",
		"max-args", "max-command-bytes", "max-key-bytes", "on-store-error", "peer", "replica-announce-ip", "replica-announce-port",
		"store-password-file", "store-sentinel-password-file", "store-sentinel-user", "store-tls-ca", "store-tls-cert", "store-tls-key",
		"store-tls-server-name", "store-wait", "unixsocket",
	} {
		all = append(all, admin.Constant(flag, t.app.options.Values[flag]))
	}
	all = append(all, admin.Setting{
		Name: "requirepass",
		Get:  func() string { return *t.app.access.password.Load() },
		Set: func(value string, _ admin.Others) (func(), error) {
			return func() { t.app.access.setPassword(value) }, nil
		},
	})
	return append(all, t.constants()...)
}

// constants returns the settings that only a start changes.
func (t *tuning) constants() []admin.Setting {
	o, at, appendFsync := t.app.options, settings.MemoryStore, "everysec"
	if t.app.storage.Remote != nil {
		at = t.app.storage.Remote.Pool.String() // without a password
	}
	switch time.Duration(o.SyncInterval) {
	case 0:
		appendFsync = "always"
	case store.NoSync:
		appendFsync = "no"
	default:
	}
	return []admin.Setting{
		admin.Constant("appendfsync", appendFsync),
		admin.Constant("appendonly", yesNo(o.DataDir != "")),
		admin.Constant("burst-is-capacity", yesNo(o.BurstIsCapacity)),
		admin.Constant("data-recover", yesNo(o.DataRecover)),
		admin.Constant("databases", strconv.Itoa(o.Databases)), // a store has one
		admin.Constant("dir", absolute(o.DataDir)),
		admin.Constant("io-threads", strconv.Itoa(o.IOThreads)),
		admin.Constant("lua-time-limit", strconv.FormatInt(o.LuaTimeLimit.Milliseconds(), 10)),
		admin.Constant("max-replica-lag", strconv.FormatInt(o.Replication.ReadyLag.Milliseconds(), 10)),
		admin.Constant("peer-wait", strconv.FormatInt(int64(o.Replication.PeerWait.Seconds()), 10)),
		admin.Constant("proto-max-bulk-len", strconv.Itoa(o.MaxCommandBytes)),
		admin.Constant("replica-read-only", "yes"),
		admin.Constant("replica-serve-stale-data", "yes"),
		admin.Constant("save", ""),
		admin.Constant("slave-read-only", "yes"), // Redis's older name of replica-read-only
		admin.Constant("store", at),
		admin.Constant("store-timeout", strconv.FormatInt(o.Remote.Timeout.Milliseconds(), 10)),
		admin.Constant("unixsocketperm", strconv.FormatUint(uint64(o.SocketMode), 8)),
	}
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
