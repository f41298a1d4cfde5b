package ahead

// Stats is what has become of units, and what is there.
type Stats struct {
	Keys int   // that have leases
	Open int64 // units that can be used

	Asked    uint64
	Granted  uint64
	Used     uint64
	Lost     uint64 // their slots began, or were in doubt, before they were used
	Returned uint64 // their time was over; whether they could be given back is not known here
}

// UpdateStats adds the Table's figures to st.
func (t *Table) UpdateStats(st *Stats) {
	if t == nil {
		return
	}
	for i := range t.parts {
		t.parts[i].updateStats(st)
	}
}

func (p *part) updateStats(st *Stats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st.Keys += len(p.leases)
	for _, e := range p.leases {
		st.Open += e.open
	}
	st.Asked += p.stats.Asked
	st.Granted += p.stats.Granted
	st.Used += p.stats.Used
	st.Lost += p.stats.Lost
	st.Returned += p.stats.Returned
}
