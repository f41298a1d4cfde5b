package squares

import "maps"

// A block is an entry beside that of its rule. What it is known by has all of the rule.

func (r *rule) blockID() string { return "block " + r.text() + " " + r.id() }

// blocks returns the blocks that rules have on a key, by number; a shadow has none.
func (m *model) blocks(p pair, r *ruling, nowNs int64) map[int]*entry {
	all := map[int]*entry{}
	for i := range r.rules {
		if e := m.keys[p][r.rules[i].blockID()]; e != nil && e.untilNs > nowNs && !r.of.shadow {
			all[i] = e
		}
	}
	return all
}

// blocked returns what a rule says of a call while it has a block, which may be nil.
func (m *model) blocked(of row, r *rule, block *entry, c call, nowNs int64, u unit) row {
	if block == nil {
		return of
	}
	if !of.limited && c.units > 0 && !c.debit { // it takes nothing
		of, _ = r.decide(r.open(m.keys[c.pair][r.id()], nowNs), call{}, nowNs, u)
	}
	left := u.of(block.untilNs - nowNs)
	if never := of.limited && of.retry < 0; c.units >= 0 && !never {
		of.retry = max(of.retry, left)
	}
	if of.remaining, of.resets = 0, max(of.resets, left); !c.debit {
		of.limited = c.units >= 0
	}
	return of
}

// begun returns the blocks that a call begins, by the rules that deny it.
func (m *model) begun(c call, r *ruling, rows []row, blocks map[int]*entry, nowNs int64) map[int]*entry {
	all := map[int]*entry{}
	for i := range r.rules {
		of := &r.rules[i]
		exceeds := rows[i].limited && c.units >= 1 && c.units <= of.most() && !c.debit && !c.noBlock && !r.of.shadow
		if exceeds && of.block > 0 && (of.each || blocks[i] == nil) {
			all[i] = &entry{untilNs: nowNs + of.block*secNs, isBlock: true}
		}
	}
	return all
}

// begin keeps the blocks that a denied call begins, and drops those of other definitions.
func (m *model) begin(d *decision, r *ruling, begun map[int]*entry, nowNs int64) {
	isNew := false
	for i, e := range begun {
		was := d.entries[r.rules[i].blockID()]
		isNew = isNew || was == nil || was.untilNs < e.untilNs
	}
	if !isNew {
		return
	}
	own := map[string]bool{}
	for i := range r.rules {
		own[r.rules[i].blockID()] = true
	}
	d.changed, d.entries = true, maps.Clone(d.entries)
	maps.DeleteFunc(d.entries, func(id string, e *entry) bool { return e.untilNs <= nowNs || e.isBlock && !own[id] })
	for i, e := range begun {
		d.entries[r.rules[i].blockID()] = e
	}
}

// look returns what a rule would say of a call, without effect.
func (m *model) look(c call, r *ruling, i int, nowNs int64, u unit) row {
	of := &r.rules[i]
	is, _ := of.decide(of.open(m.keys[c.pair][of.id()], nowNs), c, nowNs, u)
	return m.blocked(is, of, m.blocks(c.pair, r, nowNs)[i], c, nowNs, u)
}

// forever returns the row of the first rule by which a call is limited even if all keys were empty before.
func (m *model) forever(c call, empty *model, nowNs int64, u unit) row {
	r, _ := m.ruling(c.pair, nowNs)
	for i := range r.rules {
		is, was := m.look(c, &r, i, nowNs, u), empty.look(c, &r, i, nowNs, u)
		if is.limited && was.limited {
			is.retry = -1
			return is
		}
	}
	return row{limited: true, retry: -1}
}
