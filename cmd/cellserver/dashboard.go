package main

import (
	"runtime/metrics"

	"cellserver/internal/dashboard"
	"cellserver/internal/shard"
)

// newPage returns the live page, which shows nothing before its Run.
func (a *app) newPage() *dashboard.Page {
	return dashboard.New(dashboard.Source{
		Version: version,
		Now:     a.now,
		Sample:  a.sample,
		TAT: func(nowNs int64, db uint16, key []byte) (tatNs int64, ok bool) {
			return a.store.TAT(nowNs, shard.Key{DB: db, Name: key})
		},
		Reading:     a.options.reading(),
		Databases:   a.options.databases,
		MaxKeyBytes: a.options.maxKeyBytes,
		Latency:     a.engine.Latency,
		Top:         a.engine.TopKeys,
	})
}

func (a *app) sample() dashboard.Sample {
	var st shard.Stats
	a.store.UpdateStats(&st)
	return dashboard.Sample{
		Allowed:     st.Allowed,
		Limited:     st.Denied,
		Connections: a.server.Stats().Connected,
		Keys:        st.Keys,
		MemoryBytes: heldBytes(),
	}
}

// heldBytes returns the memory that the runtime holds from the system.
func heldBytes() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
