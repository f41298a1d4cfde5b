package main

import (
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"cellserver/internal/memory"
	"cellserver/internal/server"
)

// again returns the options of the same command line with the config file, and the files of passwords, as they are now.
func (a *app) again() (*options, error) {
	next := &options{}
	fs := next.flagSet(next.flagGroups())
	for name, from := range a.options.from {
		if from == "--"+name {
			if err := fs.Set(name, a.options.values[name]); err != nil {
				return nil, fmt.Errorf("--%s: %w", name, err)
			}
		}
	}
	if err := next.complete(fs, os.LookupEnv); err != nil {
		return nil, err
	}
	return next, next.readPassword(a.log)
}

// reloadSettings has the settings hold that have changed since they were loaded and that can change while the server runs. What
// CONFIG SET has set stays, unless the file has changed there. With any mistake nothing changes.
func (a *app) reloadSettings() {
	next, err := a.again()
	var changed, fixed []string
	if err == nil {
		changed, err = a.reloadStorePassword()
	}
	if err != nil {
		a.log.Error("cannot use the changed settings; all stay as they were", "error", err,
			"hint", "correct them and send SIGHUP; cellserver config check finds all mistakes")
		return
	}
	next.file.warnOfReaders(a.log)
	changes := a.reloadable()
	a.engine.ChangeSettings(func() {
		if next.requirePass != a.loaded.requirePass {
			changed = append(changed, "requirepass")
			a.access.setPassword(next.requirePass)
		}
		next.flags.VisitAll(func(f *pflag.Flag) {
			change, can := changes[f.Name]
			switch {
			case next.values[f.Name] == a.loaded.values[f.Name], f.Name == "requirepass", f.Name == "requirepass-file":
			case can:
				changed = append(changed, f.Name)
				change(next)
			default:
				fixed = append(fixed, f.Name)
				next.values[f.Name] = a.loaded.values[f.Name] // it holds, and the next reload says so again
			}
		})
	})
	a.loaded = next
	if len(changed) > 0 {
		a.log.Info("settings changed by SIGHUP", "settings", strings.Join(changed, " ")) // not the values: one is a password
	}
	if len(fixed) > 0 {
		a.log.Warn("changed settings require a restart, and stay as they were until then", "settings", strings.Join(fixed, " "))
	}
}

// reloadable are what makes settings hold that can change while the server runs: those of CONFIG SET, and the level of the log.
func (a *app) reloadable() map[string]func(next *options) {
	all := map[string]func(next *options){
		"log-level":                 func(next *options) { a.options.level.Set(slogLevel(next.logLevel)) },
		"protected-mode":            func(next *options) { a.access.protectedMode.Store(next.protectedMode) },
		"max-new-keys-per-second":   func(next *options) { a.engine.NewKeys.Limit(next.maxNewKeysPerSecond) },
		"slowlog-log-slower-than":   func(next *options) { a.engine.Records.Slowness.SetSlowlog(next.thresholds.SlowlogFromUs) },
		"slowlog-max-len":           func(next *options) { a.engine.Records.Slowlog.SetMaxLen(next.thresholds.SlowlogMaxLen) },
		"latency-monitor-threshold": func(next *options) { a.engine.Records.Slowness.SetLatency(next.thresholds.LatencyFromMs) },
	}
	maps.Copy(all, a.reloadableLimits())
	maps.Copy(all, a.reloadableMemory())
	return all
}

func (a *app) reloadableLimits() map[string]func(next *options) {
	all := map[string]func(next *options){}
	for name, set := range map[string]func(to *server.Limits, from server.Limits){
		"max-output-bytes": func(to *server.Limits, from server.Limits) { to.MaxOutputBytes = from.MaxOutputBytes },
		"maxclients": func(to *server.Limits, from server.Limits) {
			to.MaxClients = fitMaxClients(from.MaxClients, a.options.ioThreads)
		},
		"maxclients-per-address": func(to *server.Limits, from server.Limits) { to.MaxClientsPerAddress = from.MaxClientsPerAddress },
		"handshake-timeout":      func(to *server.Limits, from server.Limits) { to.HandshakeTimeout = from.HandshakeTimeout },
		"input-timeout":          func(to *server.Limits, from server.Limits) { to.InputTimeout = from.InputTimeout },
		"output-timeout":         func(to *server.Limits, from server.Limits) { to.OutputTimeout = from.OutputTimeout },
		"timeout":                func(to *server.Limits, from server.Limits) { to.IdleTimeout = from.IdleTimeout },
	} {
		all[name] = func(next *options) { a.changeLimits(func(l *server.Limits) { set(l, next.limits()) }) }
	}
	return all
}

func (a *app) reloadableMemory() map[string]func(next *options) {
	change := func(set func(to *memory.State, next *options)) func(next *options) {
		return func(next *options) {
			state := a.memory.State()
			set(&state, next)
			a.memory.Set(state.MaxBytes, state.Policy, state.Clients)
		}
	}
	return map[string]func(next *options){
		"maxmemory":         change(func(to *memory.State, next *options) { to.MaxBytes, _ = next.maxMemoryBytes() }),
		"maxmemory-clients": change(func(to *memory.State, next *options) { to.Clients = next.maxMemoryClients }),
		"maxmemory-policy":  change(func(to *memory.State, next *options) { to.Policy, _ = memory.ParsePolicy(next.maxMemoryPolicy) }),
	}
}

// reloadStorePassword has new connections to the store log in with the password that its file has now, and names the setting if
// that is another one.
func (a *app) reloadStorePassword() (changed []string, err error) {
	r := &a.options.remote
	if a.remote == nil || r.passwordFile == "" {
		return nil, nil
	}
	password, err := readSecret("--store-password-file", r.passwordFile, "the password", a.log)
	if err == nil && a.remote.pool.SetPassword(password) {
		changed = append(changed, "store-password-file")
	}
	return changed, err
}
