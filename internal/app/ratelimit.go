package app

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"

	"cellserver/internal/app/settings"
	"cellserver/internal/app/storage"
	"cellserver/internal/edge/metrics"
)

// hasOneMetricsAddr reports whether PROMETHEUS_ADDR is --metrics-addr, which then has both.
func hasOneMetricsAddr(o *settings.Options) bool {
	addr := o.Doors.Envoy.Ratelimit.MetricsAddr
	return addr != "" && addr == o.MetricsAddr && !strings.HasSuffix(addr, ":0")
}

// envoyReady returns why Envoy's service is not healthy, or nil. In the place of envoyproxy/ratelimit a store
// that was reached may be away, as there: their manifests end a process that is not healthy.
func (a *app) envoyReady() error {
	ctx, r := context.Background(), &a.options.Doors.Envoy.Ratelimit
	err := a.ready(ctx)
	switch {
	case err == nil:
		a.wasReady.Store(true)
	case errors.Is(err, storage.ErrStoreAway) && r.On && !r.HealthyWithStore && a.wasReady.Load():
		return a.prober.Ready(ctx)
	}
	return err
}

// servePrometheus serves the metrics at PROMETHEUS_ADDR.
func (a *app) servePrometheus(config metrics.Config, start func(name string, part func() error)) {
	if l := a.listeners.Ratelimit.Metrics; l != nil {
		config.Profiles = false
		config.BoundTo, config.Path = l.Addr(), a.options.Doors.Envoy.Ratelimit.MetricsPath
		start("PROMETHEUS_ADDR", a.web.Also(l, metrics.Handler(config)))
	}
}

// openRatelimit returns the listeners by which other hosts reach what envoyproxy/ratelimit has without a
// password, by name.
func (a *app) openRatelimit() map[string]net.Listener {
	l := a.listeners
	all := map[string]net.Listener{}
	if a.web.Access.IsOpen() {
		all["ratelimit_metrics"] = l.Ratelimit.Metrics
	}
	if a.access.isOpen() {
		all["grpc"], all["ratelimit_http"], all["ratelimit_debug"] = l.GRPC, l.Ratelimit.HTTP, l.Ratelimit.Debug
		if !a.knowsGRPCClients() {
			all["grpcs"] = l.GRPCTLS
		}
	}
	maps.DeleteFunc(all, func(_ string, l net.Listener) bool { return !isOpenToOthers(l) })
	return all
}

// knowsGRPCClients reports whether clients of gRPC over TLS must have a certificate.
func (a *app) knowsGRPCClients() bool {
	if a.grpcCerts != nil {
		return a.options.Doors.Envoy.Ratelimit.GRPCClientCA != ""
	}
	return a.options.ClientAuth() == tls.RequireAndVerifyClientCert
}

// warnOfRatelimit says what is open in the place of envoyproxy/ratelimit, and what is not.
func (a *app) warnOfRatelimit() {
	open := a.openRatelimit()
	if len(open) == 0 {
		return
	}
	var attrs []any
	for _, name := range slices.Sorted(maps.Keys(open)) {
		attrs = append(attrs, name, open[name].Addr().String())
	}
	a.log.Warn("other hosts can use these addresses without a password, as those of envoyproxy/ratelimit; have a NetworkPolicy or a "+
		"firewall protect them. The Redis protocol, the HTTP API and the live page are on loopback, unless CELLSERVER_ADDR, "+
		"CELLSERVER_HTTP_ADDR and CELLSERVER_METRICS_ADDR open them", attrs...)
}
