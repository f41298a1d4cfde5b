package main

import (
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
