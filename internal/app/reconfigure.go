package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/pflag"

	"cellserver/internal/app/settings"
	"cellserver/internal/keep/memory"
)

// again returns the options of the same command line with the current config file and password files.
func (t *tuning) again() (*settings.Options, error) {
	path := t.app.options.Config
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe cannot be read twice
		return nil, fmt.Errorf("--config: %s is not a regular file and cannot be read again", path)
	}
	next := &settings.Options{}
	next.Doors.Envoy.Ratelimit = t.app.options.Doors.Envoy.Ratelimit
	fs := next.FlagSet(next.FlagGroups())
	for name, from := range t.app.options.From {
		if from == "--"+name {
			if err := fs.Set(name, t.app.options.Values[name]); err != nil {
				return nil, fmt.Errorf("--%s: %w", name, err)
			}
		}
	}
	if err := next.Complete(fs, t.app.options.Getenv); err != nil {
		return nil, err
	}
	return next, next.ReadPassword(t.app.log)
}

// reloadSettings applies the settings that differ from the last load and can change at run time. Values of
// CONFIG SET stay unless the file changed there. Any mistake leaves all settings as they were.
func (t *tuning) reloadSettings() {
	next, err := t.again()
	var changed, fixed []string
	var storePassword string
	if err == nil {
		storePassword, err = t.readStorePassword()
	}
	if err == nil {
		t.app.engine.ChangeSettings(func() { changed, fixed, err = t.change(next, storePassword) })
	}
	if err != nil {
		t.app.log.Error("cannot use the changed settings; all stay as they were", "error", err,
			"hint", "correct them and send SIGHUP; cellserver config check finds all mistakes")
		return
	}
	t.loaded = next
	next.File.WarnOfReaders(t.app.log)
	if len(changed) > 0 {
		// without the values: one is a password
		t.app.log.Info("settings changed by SIGHUP", "settings", strings.Join(changed, " "))
	}
	if len(fixed) > 0 {
		t.app.log.Warn("changed settings require a restart", "settings", strings.Join(fixed, " "))
	}
	if slices.Contains(changed, "requirepass") || slices.Contains(changed, "protected-mode") {
		t.app.warnOfAccess()
	}
}

// change applies the changes and returns their names, and the names of those that require a restart. It reads
// no file, since CONFIG SET waits for it. New connections to the store log in with storePassword, if any.
func (t *tuning) change(next *settings.Options, storePassword string) (changed, fixed []string, err error) {
	maximum, err := t.changedMaximum(next)
	if err != nil {
		return nil, nil, err
	}
	if storePassword != "" && t.app.storage.Remote.Pool.SetPassword(storePassword) {
		changed = append(changed, "store-password-file")
	}
	if next.RequirePass != t.loaded.RequirePass {
		if t.app.access.reloadPassword(next.RequirePass) {
			changed = append(changed, "requirepass")
		}
	}
	changes := t.reloadable()
	for _, m := range allMemorySettings() {
		changes[m.name] = func(*settings.Options) { t.app.storage.Memory.Set(maximum) }
	}
	next.Flags.VisitAll(func(f *pflag.Flag) {
		change, isReloadable := changes[f.Name]
		switch {
		case !t.differs(next, f.Name), f.Name == "requirepass", f.Name == "requirepass-file":
		case isReloadable:
			changed = append(changed, f.Name)
			change(next)
		default:
			fixed = append(fixed, f.Name)
			next.Values[f.Name] = t.loaded.Values[f.Name] // still in force; the next reload warns again
		}
	})
	return changed, fixed, nil
}

// differs reports whether a setting differs from the last load.
func (t *tuning) differs(next *settings.Options, name string) bool {
	return next.Values[name] != t.loaded.Values[name]
}

// reloadable returns the functions that apply settings at run time: those of CONFIG SET except the memory's,
// and the log level.
func (t *tuning) reloadable() map[string]func(next *settings.Options) {
	all := map[string]func(next *settings.Options){
		"log-level":                 func(next *settings.Options) { t.app.options.Level.Set(settings.SlogLevel(next.LogLevel)) },
		"slowlog-log-slower-than":   func(next *settings.Options) { t.app.engine.Records.Slowness.SetSlowlog(next.Thresholds.SlowlogFromUs) },
		"slowlog-max-len":           func(next *settings.Options) { t.app.engine.Records.Slowlog.SetMaxLen(next.Thresholds.SlowlogMaxLen) },
		"latency-monitor-threshold": func(next *settings.Options) { t.app.engine.Records.Slowness.SetLatency(next.Thresholds.LatencyFromMs) },
	}
	for _, s := range t.tunables() {
		all[cmp.Or(s.flag, s.Name)] = s.reload
	}
	return all
}

// changedMaximum returns the memory's settings with those that differ in next; the rest may be CONFIG SET's.
func (t *tuning) changedMaximum(next *settings.Options) (memory.State, error) {
	state, changed := t.app.storage.Memory.State(), false
	for _, m := range allMemorySettings() {
		if !t.differs(next, m.name) {
			continue
		}
		value := next.Values[m.name]
		if m.name == "maxmemory" {
			maxBytes, _ := next.MaxMemoryBytes()
			value = strconv.FormatInt(maxBytes, 10)
		}
		_, changed = m.read(&state, value), true // the flag has checked the value
	}
	if !changed {
		return state, nil
	}
	if err := state.Check(); err != nil {
		return state, fmt.Errorf("--maxmemory %s %w", next.MaxMemory, err)
	}
	return state, nil
}

// readStorePassword reads the file of the store's password again; "" without one.
func (t *tuning) readStorePassword() (string, error) {
	if t.app.storage.Remote == nil {
		return "", nil
	}
	return settings.ReadSecret("--store-password-file", t.app.options.Remote.PasswordFile, "the password", t.app.log)
}

// reloadOn reloads at each hangup. One that comes before clients are served waits until they are: a reload
// must not report the server ready to the service manager earlier.
func (a *app) reloadOn(ctx context.Context, hangups <-chan os.Signal) {
	select {
	case <-ctx.Done():
		return
	case <-a.up:
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			a.reload()
		}
	}
}

// reload rereads all files. Mistakes are logged, and the previous content stays in use.
func (a *app) reload() {
	a.notify(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec()) // with the time, as Type=notify-reload requires
	defer a.notify(daemon.SdNotifyReady)
	a.log.Info("reloading on SIGHUP")
	a.tuning.reloadSettings()
	if a.certs != nil {
		a.certs.Reload()
	}
	a.web.Reload(a.options, a.log)
	a.reloadUsers()
	a.doors.Reload()
	a.access.warnOfUsers(&a.doors.tokens, a.log)
	a.storage.ReloadLimits()
}

func (a *app) reloadUsers() {
	if a.options.ACLFile == "" {
		return
	}
	if err := a.engine.ReloadUsers(); err != nil {
		a.log.Error("cannot use the ACL file; the users stay as they were", "error", err,
			"hint", "correct it and send SIGHUP, or ACL LOAD")
	}
}
