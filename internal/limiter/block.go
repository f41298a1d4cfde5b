package limiter

import (
	"encoding/binary"
	"slices"

	"cellserver/internal/funnel"
)

// A rule may block: a request that it denies shuts the key out for a time, whatever leaks meanwhile. The
// block is an entry without a payload beside the rule's, and expires at the block's end. Its id is made of
// the rule as it was written, so another definition of the rule does not find it.

// blockKind is the kind in a block's id. It is none of a key's.
const blockKind Kind = kindMask

// block is what a rule blocks by. The zero block is none.
type block struct {
	id    uint64
	forNs int64
	each  bool // each denied request begins it anew
}

// Blocking returns the rule with blocks of forNs, known by the rule's text. With each, every denied request
// begins the block anew.
func (r NamedRule) Blocking(forNs int64, each bool, text string) NamedRule {
	r.block = block{stateID(blockKind, text), forNs, each}
	return r
}

// begins reports whether a denial of a request by the rule begins a block, unless the rule blocks already.
func (r *NamedRule) begins(quantity int64) bool {
	return r.block.forNs > 0 && quantity > 0 && quantity <= r.Rule.capacity()
}

func (e *entry) isBlock() bool { return e.kind() == blockKind }

// blockOf returns the index of the rule of a block, or -1.
func (n *NamedLimit) blockOf(id uint64) int {
	for i := range n.Rules {
		if b := &n.Rules[i].block; b.forNs > 0 && b.id == id {
			return i
		}
	}
	return -1
}

// beginning returns the rules whose denials of a decided request begin blocks.
func (n *NamedLimit) beginning(quantity int64, flags Flags, result *funnel.Result) (begun uint16) {
	if !n.blocks || n.Shadow || !result.Limited || flags&(Debit|NoBlock) != 0 {
		return 0
	}
	for i := range n.Rules {
		if result.Marks.Denied()>>i&1 != 0 && n.Rules[i].begins(quantity) {
			begun |= 1 << i
		}
	}
	return begun
}

// ForgoBlock makes a rule begin no block where a denial's could not be stored: the denial holds without. It
// returns false if there was none to begin.
func (r *Rule) ForgoBlock(denial *funnel.Result) bool {
	n := r.named()
	if n == nil || !n.blocks || !denial.Limited || r.Flags&(Debit|NoBlock) != 0 {
		return false
	}
	r.Flags |= NoBlock
	return true
}

// begin begins blocks by rules, and reports whether one is new or longer. Expired entries, and blocks by
// earlier definitions, are dropped.
func (n *NamedLimit) begin(s *State, nowNs int64, begun uint16) (changed bool) {
	if begun = n.unblocked(s.Payload, nowNs, begun); begun == 0 {
		return false
	}
	b, lastNs := s.Payload[:0], nowNs
	for at, e := range entries(s.Payload) {
		i := -1
		if e.isBlock() {
			i = n.blockOf(e.id)
		}
		if e.expiresNs <= nowNs || e.isBlock() && (i < 0 || begun>>i&1 != 0) {
			continue
		}
		b = append(b, s.Payload[at:at+e.headBytes()+len(e.payload)]...)
		lastNs = max(lastNs, e.expiresNs)
	}
	for i := range n.Rules {
		if begun>>i&1 == 0 {
			continue
		}
		of := &n.Rules[i].block
		endNs := funnel.Shift(nowNs, of.forNs)
		b = binary.LittleEndian.AppendUint64(b, of.id)
		b = binary.LittleEndian.AppendUint64(b, uint64(endNs))
		b = binary.LittleEndian.AppendUint32(b, 0)
		lastNs = max(lastNs, endNs)
	}
	s.Payload, s.ExpiresNs = b, lastNs
	return true
}

// unblocked returns those of some rules that have no block, or begin theirs anew.
func (n *NamedLimit) unblocked(payload []byte, nowNs int64, rules uint16) uint16 {
	for _, e := range entries(payload) {
		if !e.isBlock() || e.expiresNs <= nowNs {
			continue
		}
		i := n.blockOf(e.id)
		if i < 0 {
			continue
		}
		if of := &n.Rules[i].block; !of.each || e.expiresNs >= funnel.Shift(nowNs, of.forNs) {
			rules &^= 1 << i
		}
	}
	return rules
}

// blocked makes a result that of a rule with a block until untilNs. quantity is what was requested: a request
// for units, and a look, is limited, unless it is a debit, and nothing remains.
func (r *Rule) blocked(result *funnel.Result, nowNs, untilNs, quantity int64, flags Flags) {
	left := r.Unit.Of(funnel.Since(nowNs, untilNs))
	result.Remaining, result.ResetAfter = 0, max(result.ResetAfter, left)
	forever := result.Limited && result.RetryAfter < 0
	if quantity >= 0 && !forever {
		result.RetryAfter = max(result.RetryAfter, left)
	}
	if flags&Debit == 0 {
		result.Limited = quantity >= 0
	}
}

// decideBlocked decides by a rule with a block. Only a refund, and a debit, changes its own state.
func (p *part) decideBlocked(r *Rule, nowNs, quantity int64, flags Flags) {
	of := *p
	if r.Kind == SlidingWindow {
		p.look(r, nowNs, quantity)
	} else {
		p.decide(r, nowNs, quantity, flags)
		if quantity > 0 && flags&Debit == 0 && !p.result.Limited { // it tells of no longer time
			*p = of
			p.decide(r, nowNs, 0, flags)
		}
	}
	r.blocked(&p.result, nowNs, p.untilNs, quantity, flags)
}

// keeps reports whether a rule's write leaves an entry in a payload: a live one of another rule, or a block
// by one of these.
func (n *NamedLimit) keeps(e *entry, nowNs int64) bool {
	switch {
	case e.expiresNs <= nowNs:
		return false
	case e.isBlock():
		return n.blockOf(e.id) >= 0
	default:
		return n.ruleOf(e.id, 0) < 0
	}
}

// Look returns the result of a request by one rule on a key's state, without effect.
func (n *NamedLimit) Look(i int, s *State, nowNs, quantity int64) funnel.Result {
	result := n.Rules[i].Look(s, nowNs, quantity)
	if untilNs := n.blockedUntil(i, s, nowNs); untilNs > 0 {
		if quantity > 0 && !result.Limited { // it takes nothing
			result = n.Rules[i].Look(s, nowNs, 0)
		}
		n.Rules[i].Rule.blocked(&result, nowNs, untilNs, quantity, 0)
	}
	return result
}

// Look is NamedLimit.Look of the rule without its block.
func (r *NamedRule) Look(s *State, nowNs, quantity int64) funnel.Result {
	var e entry
	if s = EndedHolds(s, nowNs); s.Kind == Named && s.ExpiresNs > nowNs {
		e = entryOf(s.Payload, r.ID)
	}
	var own State
	if r.Rule.Kind == Funnel {
		own.ExpiresNs = r.Rule.Funnel.Rebased(e.expiresNs, nowNs, e.intervalNs())
	} else {
		own = Shifted(State{Kind: r.Rule.Kind, ExpiresNs: e.expiresNs, Payload: e.payload}, 0)
	}
	result, _, _ := r.Rule.Decide(&own, nowNs, quantity) // the kind fits
	return result
}

// blockedUntil returns the end of a rule's block on a key, 0 without.
func (n *NamedLimit) blockedUntil(i int, s *State, nowNs int64) (untilNs int64) {
	if of := &n.Rules[i].block; of.forNs > 0 && !n.Shadow && s.Kind == Named && s.ExpiresNs > nowNs {
		if e := entryOf(s.Payload, of.id); e.expiresNs > nowNs {
			return e.expiresNs
		}
	}
	return 0
}

// BlockedNs returns the time until the end of a rule's block on a key, 0 without.
func (n *NamedLimit) BlockedNs(i int, s *State, nowNs int64) uint64 {
	return funnel.Since(nowNs, max(nowNs, n.blockedUntil(i, s, nowNs)))
}

// BlockedUntil returns the last end of a state's blocks, by whatever rules; 0 for none.
func BlockedUntil(s *State, nowNs int64) (untilNs int64) {
	if s.Kind != Named || s.ExpiresNs <= nowNs {
		return 0
	}
	for _, e := range entries(s.Payload) {
		if e.isBlock() && e.expiresNs > nowNs {
			untilNs = max(untilNs, e.expiresNs)
		}
	}
	return untilNs
}

// SameBlocksAndHolds reports whether two states have blocks by the same rules, and the same holds.
func SameBlocksAndHolds(a, b *State) bool {
	return slices.Equal(blocksOf(a), blocksOf(b)) && sameHolds(a, b)
}

func blocksOf(s *State) (ids []uint64) {
	if s.Kind != Named {
		return nil
	}
	for _, e := range entries(s.Payload) {
		if e.isBlock() {
			ids = append(ids, e.id)
		}
	}
	return ids
}
