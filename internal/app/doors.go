package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/base/certs"
	"cellserver/internal/base/smallfile"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/httpapi"
	"cellserver/internal/edge/rls"
	"cellserver/internal/wire/peer"
)

// doorsConfig configures Doors. All fields but Certs are required.
type doorsConfig struct {
	Options   *settings.Options
	Listeners *listeners
	Certs     *certs.Keeper // nil without TLS
	Door      door.Config   // of each, but for its name and tokens
	Limits    *namedlimit.Registry
	Ready     func(context.Context) error
	Loading   func() bool
	Log       *slog.Logger
}

// doors holds the protocols beside RESP, with the files that they read. It is safe for concurrent use.
type doors struct {
	config doorsConfig
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
func openDoors(c doorsConfig) (*doors, error) {
	d := &doors{config: c}
	if err := readTokens(c.Options.Doors.TokensFile, &d.tokens); err != nil {
		return nil, err
	}
	l, o := c.Listeners, &c.Options.Doors
	if first := firstOf(l.HTTP, l.HTTPTLS); first != nil {
		headers, _ := httpapi.HeadersOf(o.HTTPHeaders) // checked by the flag
		d.add(peer.HTTP, l.HTTP, l.HTTPTLS, httpapi.New(httpapi.Config{
			Limits: c.Limits, Reading: c.Options.Reading(), Headers: headers,
			TrustedProxies: o.TrustedProxies(), IPv6PrefixBits: o.IPv6PrefixBits, AllowedHosts: o.AllowedHosts, BoundTo: first.Addr(),
		}))
	}
	if firstOf(l.GRPC, l.GRPCTLS) != nil {
		if err := d.openRules(); err != nil {
			return nil, err
		}
		d.envoy = rls.New(rls.Config{
			Rules: d.currentRules, Calendars: c.Limits.Calendars(), Headers: o.EnvoyHeaders, Metadata: o.EnvoyMetadata,
			Ready: func() error { return c.Ready(context.Background()) }, Loading: c.Loading, Log: c.Log,
		})
		d.add(peer.GRPC, l.GRPC, l.GRPCTLS, d.envoy)
	}
	return d, nil
}

func (d *doors) openRules() (err error) {
	dir := d.config.Options.Doors.EnvoyConfig
	if dir == "" {
		return nil
	}
	if d.rules, err = envoyconfig.Open(dir); err != nil {
		return fmt.Errorf("--envoy-config: %w", err)
	}
	d.rules.LogNotes(d.config.Log)
	return nil
}

// currentRules returns the rules of --envoy-config, or nil.
func (d *doors) currentRules() *envoyconfig.Rules {
	if d.rules == nil {
		return nil
	}
	return d.rules.Rules()
}

func firstOf(a, b net.Listener) net.Listener {
	if a != nil {
		return a
	}
	return b
}

func (d *doors) add(name peer.Door, plain, secured net.Listener, h http.Handler) {
	c := d.config.Door
	c.Name, c.Tokens = name, &d.tokens
	d.all = append(d.all, openedDoor{door.New(c, h), plain, secured})
}

// readTokens reads --http-tokens-file, if it is set.
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
				return one.ServeTLS(one.secured, d.config.Certs.Config(door.Protocols()...))
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
	if err := readTokens(d.config.Options.Doors.TokensFile, &d.tokens); err != nil {
		d.config.Log.Error("cannot use the changed tokens; the previous ones stay in use", "error", err,
			"hint", "correct the file and send SIGHUP")
	}
	if d.rules == nil {
		return
	}
	if err := d.rules.Reload(); err != nil {
		d.config.Log.Error("cannot use the changed rules for Envoy; the previous ones stay in use", "error", err,
			"hint", "correct the files; they are read again when they change, and at SIGHUP")
		return
	}
	d.rules.LogNotes(d.config.Log)
}

// Watch reloads the rules for Envoy when their files change, until ctx ends.
func (d *doors) Watch(ctx context.Context) {
	if d.rules != nil {
		d.rules.Watch(ctx, watchInterval, d.config.Log)
	}
}

const watchInterval = 2 * time.Second

// RulesFailed reports whether the last load of the rules for Envoy failed.
func (d *doors) RulesFailed() bool { return d.rules != nil && d.rules.LastFailed() }

// Envoy returns Envoy's rate limit service, nil without a door for it.
func (d *doors) Envoy() *rls.Service { return d.envoy }
