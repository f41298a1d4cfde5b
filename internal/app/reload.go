package app

import (
	"context"
	"os"
)

// reloadOn reloads at each hangup, and at one that came before clients were served as soon as they are: until
// then the service manager must not be told that a reload has made the server ready.
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

// reload reads again what stands in files. What cannot be used is logged, and what was there before stays.
func (a *app) reload() {
	a.notifyReloading()
	defer a.notifyReady()
	a.log.Info("reloading on SIGHUP")
	a.tuning.reloadSettings()
	if a.certs != nil {
		a.certs.Reload()
	}
	a.web.Reload(a.options, a.log)
	a.reloadUsers()
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
