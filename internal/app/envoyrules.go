package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/base/certs"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/xds"
)

// ruleSource is where limits for Envoy come from.
type ruleSource interface {
	// Rules returns those in use, nil for none.
	Rules() *envoyconfig.Rules
	// Run keeps them up to date until ctx ends.
	Run(ctx context.Context)
	// Reload reads them again at a hangup.
	Reload()
	// Limits returns what is known of them.
	Limits() envoyconfig.Status
}

// startRules opens the source that the settings name, and has it run.
func (a *app) startRules() error {
	o := &a.options.Doors.Envoy
	run := func() { a.rules.Run(a.background) }
	switch {
	case o.Config != "":
		files, err := openRuleFiles(a.options, a.log)
		if err != nil {
			return err
		}
		a.rules = fileRules{files, o.Config, a.log}
	case o.XDS.Addr != "":
		if err := checkXDSFiles(a.options); err != nil {
			return err
		}
		config := xdsConfig(a.options, a.log)
		if a.storage.Envoy != nil { // a nil *Kept would make the interface non-nil
			config.Keep = a.storage.Envoy
		}
		client := xds.New(config)
		a.rules, a.firstRules = xdsRules{client, o.XDS.Addr}, client.First()
		a.writers.Add(1)
		run = func() {
			defer a.writers.Done()
			client.Run(a.background)
		}
	default:
		a.rules = noRules{}
	}
	a.parts.run("the rules for Envoy", run)
	return nil
}

// awaitRules waits for the first configuration.
func (a *app) awaitRules(ctx context.Context) error {
	select {
	case <-a.firstRules:
		return nil
	default:
	}
	a.log.Info("the first limits for Envoy are awaited; no address is open before", "server", a.options.Doors.Envoy.XDS.Addr)
	select {
	case <-a.firstRules:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// awaitsRules reports whether no listener may open before the first configuration.
func (a *app) awaitsRules() bool {
	o := &a.options.Doors.Envoy
	return o.XDS.Addr != "" && o.Ratelimit.AwaitsConfig
}

// noRules is for a server without limits for Envoy.
type noRules struct{}

func (noRules) Rules() *envoyconfig.Rules  { return nil }
func (noRules) Run(context.Context)        {}
func (noRules) Reload()                    {}
func (noRules) Limits() envoyconfig.Status { return envoyconfig.Status{} }

// fileRules are those of --envoy-config.
type fileRules struct {
	*envoyconfig.Store
	dir string
	log *slog.Logger
}

func openRuleFiles(o *settings.Options, log *slog.Logger) (*envoyconfig.Store, error) {
	envoy := &o.Doors.Envoy
	files, err := envoyconfig.Open(envoy.Config, readingOf(&envoy.Ratelimit))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.From.Of("envoy-config"), err)
	}
	files.LogRead(log)
	return files, nil
}

// readingOf says which files of a directory are read for Envoy, and how.
func readingOf(r *settings.RatelimitOptions) envoyconfig.Options {
	return envoyconfig.Options{MergeDomains: r.MergeDomains, AllFiles: r.AllFiles, IgnoreDotFiles: r.IgnoreDotFiles}
}

const watchInterval = 2 * time.Second

func (r fileRules) Run(ctx context.Context) { r.Watch(ctx, watchInterval, r.log) }

func (r fileRules) Reload() {
	if err := r.Store.Reload(); err != nil {
		r.log.Error("cannot use the changed rules for Envoy; the previous ones stay in use", "error", err,
			"hint", "correct the files; they are read again when they change, and at SIGHUP")
		return
	}
	r.LogRead(r.log)
}

func (r fileRules) Limits() envoyconfig.Status {
	return envoyconfig.Status{Source: envoyconfig.Files, From: r.dir, Rules: r.Rules(), Failed: r.LastFailed(), Loads: r.Loads()}
}

// xdsRules are those of --envoy-xds, which come by themselves.
type xdsRules struct {
	*xds.Client
	server string
}

func (xdsRules) Reload() {}

func (r xdsRules) Limits() envoyconfig.Status {
	st := envoyconfig.Status{Source: envoyconfig.XDS, From: r.server, XDS: r.Status()}
	st.Loads = envoyconfig.Loads{Done: st.XDS.Accepted, Failed: st.XDS.Rejected}
	st.Rules = r.Rules() // after the status, by which there are some
	return st
}

func xdsConfig(o *settings.Options, log *slog.Logger) xds.Config {
	x := &o.Doors.Envoy.XDS
	c := xds.Config{
		Addr: x.Addr, NodeID: x.NodeID, NodeMetadata: settings.Pairs(x.NodeMetadata), Headers: settings.Pairs(x.Headers),
		MaxMessageBytes: x.MaxMessageBytes, Options: envoyconfig.Options{MergeDomains: o.Doors.Envoy.Ratelimit.MergeDomains},
		FirstPause: x.FirstPause, LongestPause: x.LongestPause, Log: log,
	}
	if x.TLS {
		c.TLS = func() (*tls.Config, error) { return xdsTLS(o) } // of each connection, as files change
	}
	return c
}

func xdsTLS(o *settings.Options) (c *tls.Config, err error) {
	x := &o.Doors.Envoy.XDS
	c = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: x.TLSName}
	if x.CA != "" {
		if c.RootCAs, err = certs.Authorities(x.CA); err != nil {
			return nil, fmt.Errorf("%s: %w", o.From.Of("envoy-xds-tls-ca"), err)
		}
	}
	if x.Cert != "" {
		if c.Certificates, err = certs.Pair(x.Cert, x.Key); err != nil {
			return nil, fmt.Errorf("%s and -key: %w", o.From.Of("envoy-xds-tls-cert"), err)
		}
	}
	return c, nil
}

// checkXDSFiles reads the TLS files.
func checkXDSFiles(o *settings.Options) error {
	if !o.Doors.Envoy.XDS.TLS {
		return nil
	}
	_, err := xdsTLS(o)
	return err
}
