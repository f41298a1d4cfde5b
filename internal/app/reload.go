package app

import (
	"context"
	"os"
)

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
