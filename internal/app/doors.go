package app

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

	"cellserver/internal/base/smallfile"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/httpapi"
	"cellserver/internal/edge/rls"
	"cellserver/internal/wire/peer"
)

// doors holds the protocols beside RESP, with the files that they read. It is safe for concurrent use.
type doors struct {
	app    *app
	tokens door.Tokens
	rules  *envoyconfig.Store // nil without --envoy-config
	envoy  *rls.Service       // nil without a door for it
	all    []openedDoor
}

// openedDoor is a door with its listeners; either may be nil.
type openedDoor struct {
	*door.Door
	plain, secured net.Listener
}

// openDoors reads the files and prepares the doors that have an address.
func (a *app) openDoors() (*doors, error) {
	d := &doors{app: a}
	l, o := a.listeners, &a.options.Doors
	if err := readTokens(o.TokensFile, &d.tokens); err != nil {
		return nil, err
	}
	if first := cmp.Or(l.HTTP, l.HTTPTLS); first != nil {
		headers, _ := httpapi.HeadersOf(o.HTTPHeaders) // checked by the flag
		api, config := httpapi.New(httpapi.Config{
			Limits: a.storage.Limits, Reading: a.options.Reading(), Headers: headers,
			TrustedProxies: o.TrustedProxies(), IPv6PrefixBits: o.IPv6PrefixBits, AllowedHosts: o.AllowedHosts, BoundTo: first.Addr(),
		}), d.config(peer.HTTP)
		config.NewLoopSession = api.NewSession
		d.add(l.HTTP, l.HTTPTLS, door.New(config, api))
	}
	if cmp.Or(l.GRPC, l.GRPCTLS) != nil {
		if err := d.openRules(); err != nil {
			return nil, err
		}
		d.envoy = rls.New(rls.Config{
			Rules: d.currentRules, Calendars: a.storage.Limits.Calendars(), Headers: o.EnvoyHeaders, Metadata: o.EnvoyMetadata,
			Ready: func() error { return a.ready(context.Background()) }, Loading: a.storage.Gate.Loading,
		})
		d.add(l.GRPC, l.GRPCTLS, door.NewGRPC(d.config(peer.GRPC), d.envoy.Procedures()))
	}
	return d, nil
}

func (d *doors) openRules() (err error) {
	dir := d.app.options.Doors.EnvoyConfig
	if dir == "" {
		return nil
	}
	if d.rules, err = envoyconfig.Open(dir); err != nil {
		return fmt.Errorf("--envoy-config: %w", err)
	}
	d.rules.LogRead(d.app.log)
	return nil
}

// currentRules returns the rules of --envoy-config, or nil.
func (d *doors) currentRules() *envoyconfig.Rules {
	if d.rules == nil {
		return nil
	}
	return d.rules.Rules()
}

func (d *doors) add(plain, secured net.Listener, one *door.Door) {
	d.all = append(d.all, openedDoor{one, plain, secured})
}

func (d *doors) config(name peer.Door) door.Config {
	a := d.app
	return door.Config{
		Name:       name,
		Tokens:     &d.tokens,
		Server:     a.server,
		NewSession: func(p peer.Peer, c peer.Conn) door.Session { return a.engine.NewSession(p, c) },
		Users:      a.access.users,
		Logins:     a.engine.Logins,
		Admit:      a.admit,
		Now:        a.now,
		Log:        a.log,
	}
}

func readTokens(file string, into *door.Tokens) error {
	if file == "" {
		return nil
	}
	text, err := smallfile.Read(file)
	if err != nil {
		return fmt.Errorf("cannot read --http-tokens-file %s: %w", file, smallfile.Cause(err))
	}
	if err := into.Set(text); err != nil {
		return fmt.Errorf("--http-tokens-file %s: %w", file, err)
	}
	return nil
}

// Serve starts serving each listener.
func (d *doors) Serve(start func(name string, part func() error)) {
	for _, one := range d.all {
		if one.plain != nil {
			start("the door "+one.Name.String(), func() error { return one.Serve(one.plain) })
		}
		if one.secured != nil {
			start("the door "+one.Name.String(), func() error {
				return one.ServeTLS(one.secured, d.app.certs.Config(door.Protocols()...))
			})
		}
	}
}

// Shutdown ends all doors: gracefully until ctx is done, then at once.
func (d *doors) Shutdown(ctx context.Context) {
	for _, one := range d.all {
		one.Shutdown(ctx)
	}
}

// AwaitPassed waits for answers that event loops, which have ended, have left to the doors, or until ctx is
// done.
func (d *doors) AwaitPassed(ctx context.Context) {
	for _, one := range d.all {
		one.AwaitPassed(ctx)
	}
}

// Stats returns the doors' counts by name.
func (d *doors) Stats() map[string]*door.Stats {
	all := map[string]*door.Stats{}
	for _, one := range d.all {
		all[one.Name.String()] = one.Stats
	}
	return all
}

// Reload rereads the files. After a mistake, which is logged, the previous content stays in use.
func (d *doors) Reload() {
	if err := readTokens(d.app.options.Doors.TokensFile, &d.tokens); err != nil {
		d.app.log.Error("cannot use the changed tokens; the previous ones stay in use", "error", err,
			"hint", "correct the file and send SIGHUP")
	}
	if d.rules == nil {
		return
	}
	if err := d.rules.Reload(); err != nil {
		d.app.log.Error("cannot use the changed rules for Envoy; the previous ones stay in use", "error", err,
			"hint", "correct the files; they are read again when they change, and at SIGHUP")
		return
	}
	d.rules.LogRead(d.app.log)
}

// Watch reloads the rules for Envoy when their files change, until ctx ends.
func (d *doors) Watch(ctx context.Context) {
	if d.rules != nil {
		d.rules.Watch(ctx, watchInterval, d.app.log)
	}
}

const watchInterval = 2 * time.Second

// RulesFailed reports whether the last load of the rules for Envoy failed.
func (d *doors) RulesFailed() bool { return d.rules != nil && d.rules.LastFailed() }
