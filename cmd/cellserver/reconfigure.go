package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"cellserver/internal/edge/server"
	"cellserver/internal/keep/memory"
)

// again returns the options of the same command line with the config file, and the files of passwords, as they are now.
func (a *app) again() (*options, error) {
	path := a.options.config
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe is empty the second time, or waited for
		return nil, fmt.Errorf("--config: %s is no regular file, and cannot be read again", path)
	}
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
	var storePassword string
	if err == nil {
		storePassword, err = a.readStorePassword()
	}
	if err == nil {
		a.engine.ChangeSettings(func() { changed, fixed, err = a.change(next, storePassword) })
	}
	if err != nil {
		a.log.Error("cannot use the changed settings; all stay as they were", "error", err,
			"hint", "correct them and send SIGHUP; cellserver config check finds all mistakes")
		return
	}
	a.loaded = next
	next.file.warnOfReaders(a.log)
	if len(changed) > 0 {
		a.log.Info("settings changed by SIGHUP", "settings", strings.Join(changed, " ")) // not the values: one is a password
	}
	if len(fixed) > 0 {
		a.log.Warn("changed settings require a restart, and stay as they were until then", "settings", strings.Join(fixed, " "))
	}
	if slices.Contains(changed, "requirepass") || slices.Contains(changed, "protected-mode") {
		a.warnOfAccess()
	}
}

// change makes the changes, and names them and those that require a restart. It reads no file, as CONFIG SET waits for it. New
// connections to the store log in with its password, if there is one.
func (a *app) change(next *options, storePassword string) (changed, fixed []string, err error) {
	maximum, err := a.changedMaximum(next)
	if err != nil {
		return nil, nil, err
	}
	if storePassword != "" && a.remote.pool.SetPassword(storePassword) {
		changed = append(changed, "store-password-file")
	}
	if next.requirePass != a.loaded.requirePass {
		changed = append(changed, "requirepass")
		a.access.setPassword(next.requirePass)
	}
	changes := a.reloadable()
	for _, m := range allMemorySettings() {
		changes[m.name] = func(*options) { a.memory.Set(maximum.MaxBytes, maximum.Policy, maximum.Clients) }
	}
	next.flags.VisitAll(func(f *pflag.Flag) {
		change, can := changes[f.Name]
		switch {
		case !a.differs(next, f.Name), f.Name == "requirepass", f.Name == "requirepass-file":
		case can:
			changed = append(changed, f.Name)
			change(next)
		default:
			fixed = append(fixed, f.Name)
			next.values[f.Name] = a.loaded.values[f.Name] // it holds, and the next reload says so again
		}
	})
	return changed, fixed, nil
}

// differs reports whether a setting is another one than when settings were loaded last.
func (a *app) differs(next *options, name string) bool {
	return next.values[name] != a.loaded.values[name]
}

// reloadable are what makes settings hold that can change while the server runs: those of CONFIG SET, but for the maximum of memory,
// and the level of the log.
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

// changedMaximum is what the maximum of memory comes to with what differs in next: the rest of it may be CONFIG SET's.
func (a *app) changedMaximum(next *options) (memory.State, error) {
	state, changed := a.memory.State(), false
	for name, set := range map[string]func(){
		"maxmemory":         func() { state.MaxBytes, _ = next.maxMemoryBytes() },
		"maxmemory-clients": func() { state.Clients = next.maxMemoryClients },
		"maxmemory-policy":  func() { state.Policy, _ = memory.ParsePolicy(next.maxMemoryPolicy) },
	} {
		if a.differs(next, name) {
			set()
			changed = true
		}
	}
	if !changed {
		return state, nil
	}
	if err := memory.Check(state.MaxBytes, state.Clients); err != nil {
		return state, fmt.Errorf("--maxmemory %w", err)
	}
	return state, nil
}

// readStorePassword reads the file of the store's password again; "" for none.
func (a *app) readStorePassword() (string, error) {
	if a.remote == nil {
		return "", nil
	}
	return readSecret("--store-password-file", a.options.remote.passwordFile, "the password", a.log)
}
