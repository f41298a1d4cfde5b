package app

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"

	"cellserver/internal/base/certs"
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
	envoy  *rls.Service // nil without a door for it
	all    []openedDoor
}

// openedDoor is a door with its listeners; either may be nil, and those of a late one are opened when clients
// are let in.
type openedDoor struct {
	*door.Door
	plain, secured *net.Listener
	certs          *certs.Keeper // of the second; nil without it
	isLate         bool
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
		d.all = append(d.all, openedDoor{door.New(config, api), &l.HTTP, &l.HTTPTLS, a.certs, false})
	}
	if o.HasGRPC() {
		d.envoy = rls.New(rls.Config{
			Rules: a.rules.Rules, Calendars: a.storage.Limits.Calendars(), Headers: o.Envoy.Headers, Metadata: o.Envoy.Metadata,
			Ready: a.envoyReady, Loading: a.storage.Gate.Loading,
			AwaitsRules: o.Envoy.XDS.Addr != "", HealthyWithConfig: o.Envoy.Ratelimit.HealthyWithConfig,
			HeaderNames: o.Envoy.Ratelimit.HeaderNames, NearRatio: o.Envoy.Ratelimit.NearRatio,
			Shadow: o.Envoy.Ratelimit.Shadow, Quota: o.Envoy.Ratelimit.Quota, StopsWhenOver: o.Envoy.Ratelimit.StopsWhenOver,
		})
		d.addGRPC()
	}
	return d, nil
}

// addGRPC adds the door of gRPC, and what envoyproxy/ratelimit has beside it.
func (d *doors) addGRPC() {
	l, config, r := d.app.listeners, d.config(peer.GRPC), &d.app.options.Doors.Envoy.Ratelimit
	isLate := hasLate(d.app.options)
	if r.On { // who may ask is for the network to say, as there
		config.Admit = func(peer.Peer) string { return "" }
	}
	config.MaxConnectionAge, config.MaxConnectionAgeGrace = r.MaxConnectionAge, r.MaxConnectionAgeGrace
	grpc := door.NewGRPC(config, d.envoy.Procedures())
	d.all = append(d.all, openedDoor{grpc, &l.GRPC, &l.GRPCTLS, cmp.Or(d.app.grpcCerts, d.app.certs), isLate})
	for _, one := range []struct {
		addr    string
		l       *net.Listener
		name    peer.Door
		handler http.Handler
	}{
		{r.HTTPAddr, &l.Ratelimit.HTTP, peer.RatelimitHTTP, rls.NewHTTP(d.envoy)},
		{r.DebugAddr, &l.Ratelimit.Debug, peer.RatelimitDebug, rls.NewDebug(d.envoy, rls.DebugConfig{Dump: envoyconfig.Dump, Profiles: d.app.options.Pprof})},
	} {
		if one.addr != "" {
			config.Name = one.name
			d.all = append(d.all, openedDoor{door.New(config, one.handler), one.l, new(net.Listener), nil, isLate})
		}
	}
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

// Serve starts serving each listener, of the late doors or of the others.
func (d *doors) Serve(late bool, start func(name string, part func() error)) {
	for _, one := range d.all {
		if one.isLate != late {
			continue
		}
		if l := *one.plain; l != nil {
			start("the door "+one.Name.String(), func() error { return one.Serve(l) })
		}
		if l := *one.secured; l != nil {
			start("the door "+one.Name.String(), func() error {
				return one.ServeTLS(l, one.certs.Config(door.Protocols()...))
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
	if d.app.grpcCerts != nil {
		d.app.grpcCerts.Reload()
	}
	d.app.rules.Reload()
}
