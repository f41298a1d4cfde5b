package main

import (
	"crypto/tls"
	"net"
	"os"
	"runtime/metrics"

	"cellserver/internal/buildinfo"
	"cellserver/internal/dashboard"
	"cellserver/internal/decide"
	"cellserver/internal/funnel"
	"cellserver/internal/store"
)

// newPage returns the live page, which shows nothing before its Run.
func (a *app) newPage() *dashboard.Page {
	return dashboard.New(dashboard.Source{
		Version: buildinfo.Version,
		Facts:   a.facts(),
		Now:     a.now,
		Sample:  a.sample,
		Look: func(nowNs int64, key store.Key, limit funnel.Limit) (decide.Probe, error) {
			return decide.Look(a.store, nowNs, key, limit)
		},
		Reading:     a.options.reading(),
		Databases:   a.options.databases,
		MaxKeyBytes: a.options.maxKeyBytes,
		Limits:      a.limits.All,
		Persistence: a.persistence(),
		Remote:      a.remoteStatus(),
		Latency:     a.engine.Records.ThrottleDurations,
		Top:         a.topKeys,
	})
}

// facts returns what the page says of the server beside figures.
func (a *app) facts() func() dashboard.Facts {
	f := dashboard.Facts{StartedNs: a.now(), Revision: buildinfo.Read().Revision}
	f.Host, _ = os.Hostname()
	if a.remote != nil {
		f.Store = a.remote.pool.String()
	}
	for _, l := range []net.Listener{a.listeners.tcp, a.listeners.tls, a.listeners.unix} {
		if l != nil {
			f.Addrs = append(f.Addrs, l.Addr().String())
		}
	}
	f.Port = a.connections().Port
	return func() dashboard.Facts {
		now := f
		now.Warnings = a.warnings()
		return now
	}
}

// warnings are about access: as the log's, but as it is now.
func (a *app) warnings() (all []dashboard.Warning) {
	others := func(l net.Listener) bool { return l != nil && !l.Addr().(*net.TCPAddr).IP.IsLoopback() }
	byCert := a.options.clientAuth() == tls.RequireAndVerifyClientCert
	switch reached := others(a.listeners.tcp) || others(a.listeners.tls) && !byCert; {
	case !a.access.isOpen():
	case a.access.refusesOtherHosts() && (reached || others(a.listeners.tls)):
		all = append(all, dashboard.RefusesHosts)
	case reached:
		all = append(all, dashboard.NoPassword)
	}
	switch {
	case !others(a.listeners.metrics):
	case a.web.access.IsOpen():
		all = append(all, dashboard.OpenPage)
	case a.web.certs == nil:
		all = append(all, dashboard.UnencryptedPage)
	}
	return all
}

func (a *app) sample() dashboard.Sample {
	var st store.Stats
	a.store.UpdateStats(&st)
	sample := dashboard.Sample{
		Allowed:     st.Allowed,
		Limited:     st.Limited,
		Connections: a.server.Stats().Connected,
		Keys:        st.Keys,
		MemoryBytes: heldBytes(),

		MaxMemoryBytes: uint64(a.memory.State().MaxBytes),
		Evicted:        st.Evicted,
		Refused:        st.Refused,
	}
	if a.remote != nil {
		sample.Keys = a.remote.watch.Keys()
		figures := a.remote.Stats()
		sample.ByPolicy = figures.ByPolicy()
	}
	return sample
}

// heldBytes returns the memory that the runtime holds from the system.
func heldBytes() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
