package ahead

import "cellserver/internal/store"

// UpdateStats adds the Table's figures to st.
func (t *Table) UpdateStats(st *store.LeaseStats) {
	if t == nil {
		return
	}
	for i := range t.parts {
		t.parts[i].updateStats(st)
	}
}

func (p *part) updateStats(st *store.LeaseStats) {
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
