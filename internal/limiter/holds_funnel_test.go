package limiter_test

import (
	"math/big"
	"math/bits"
	"slices"
)

// A funnel is reckoned from all its charges: a hold's are those of its true units, once these are known.

// deed is what a funnel was charged, or what else has changed it.
type deed struct {
	what       deedKind
	atNs       int64
	units      int64
	intervalNs int64
	mostNs     int64  // of a rebase, the tolerance
	hold       uint64 // number of the hold that may still return units; 0 for none
}

type deedKind uint8

const (
	charges deedKind = iota
	refunds
	rebases
)

const mostDebtNs = int64(1) << 62

// held62 returns a product, at most mostDebtNs.
func held62(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi > 0 || lo > uint64(mostDebtNs) {
		return mostDebtNs
	}
	return int64(lo)
}

// scaled returns a debt of another interval: as many units, rounded up, but at most a full funnel, or the
// debt as it is.
func scaled(debtNs, fromNs, toNs, mostNs int64) (ns int64, capped bool) {
	if fromNs == toNs || fromNs == 0 || debtNs == 0 {
		return debtNs, false
	}
	of := new(big.Int).Mul(big.NewInt(debtNs), big.NewInt(toNs))
	of.Add(of, big.NewInt(fromNs-1)).Div(of, big.NewInt(fromNs))
	if most := big.NewInt(max(mostNs, debtNs)); of.Cmp(most) > 0 {
		return most.Int64(), true
	}
	return of.Int64(), false
}

// flow is a funnel's history since it was last empty.
type flow struct {
	tatNs, intervalNs int64 // before the deeds
	deeds             []deed
	slackNs           int64 // by which rebases may round
	looseNs           int64 // until when a rebase that was cut off while units were held tells
}

// after returns what a deed leaves.
func (d *deed) after(tatNs, intervalNs int64) (newTATNs, newIntervalNs int64) {
	debtNs := max(0, tatNs-d.atNs)
	switch d.what {
	case charges:
		debtNs += min(held62(d.units, d.intervalNs), max(debtNs, mostDebtNs)-debtNs)
	case refunds:
		debtNs -= min(debtNs, held62(d.units, d.intervalNs))
	case rebases:
		debtNs, _ = scaled(debtNs, intervalNs, d.intervalNs, d.mostNs)
	}
	return d.atNs + debtNs, d.intervalNs
}

func (f *flow) tat() (tatNs, intervalNs int64) {
	tatNs, intervalNs = f.tatNs, f.intervalNs
	for i := range f.deeds {
		tatNs, intervalNs = f.deeds[i].after(tatNs, intervalNs)
	}
	return tatNs, intervalNs
}

func (f *flow) debtNs(nowNs int64) (ns, intervalNs int64) {
	tatNs, intervalNs := f.tat()
	return max(0, tatNs-nowNs), intervalNs
}

// fold forgets the deeds of an empty funnel, and joins those before the first hold.
func (f *flow) fold(nowNs int64) {
	if tatNs, intervalNs := f.tat(); tatNs+f.slackNs <= nowNs {
		*f = flow{intervalNs: intervalNs, looseNs: f.looseNs}
		return
	}
	n := 0
	for ; n < len(f.deeds) && f.deeds[n].hold == 0; n++ {
		f.tatNs, f.intervalNs = f.deeds[n].after(f.tatNs, f.intervalNs)
	}
	f.deeds = append([]deed(nil), f.deeds[n:]...)
}

// rebase makes the debt one of a rule's interval.
func (f *flow) rebase(nowNs int64, r *heldRule) {
	ns, intervalNs := f.debtNs(nowNs)
	if ns == 0 || intervalNs == r.intervalNs {
		return
	}
	most, capped := scaled(ns, intervalNs, r.intervalNs, r.toleranceNs())
	isOpen := func(d deed) bool { return d.hold != 0 }
	if capped && slices.ContainsFunc(f.deeds, isOpen) || f.looseNs > nowNs {
		f.looseNs = max(f.looseNs, nowNs+most)
	}
	f.slackNs = f.slackNs*((r.intervalNs+intervalNs-1)/intervalNs) + 1
	f.deeds = append(f.deeds, deed{what: rebases, atNs: nowNs, intervalNs: r.intervalNs, mostNs: r.toleranceNs()})
}

// seenNs returns the debt by a rule.
func (f *flow) seenNs(nowNs int64, r *heldRule) (ns, slackNs int64) {
	ns, intervalNs := f.debtNs(nowNs)
	slackNs = f.slackNs
	if ns > 0 && intervalNs != r.intervalNs {
		ns, _ = scaled(ns, intervalNs, r.intervalNs, r.toleranceNs())
		slackNs = slackNs*((r.intervalNs+intervalNs-1)/intervalNs) + 1
	}
	return ns, slackNs
}

// ends makes a hold's charge that of the units used.
func (f *flow) ends(hold uint64, used int64) {
	for i := range f.deeds {
		if d := &f.deeds[i]; d.hold == hold {
			d.units, d.hold = min(d.units, used), 0
		}
	}
}

func (f *flow) add(d deed) {
	if f.deeds = append(f.deeds, d); f.looseNs > d.atNs && d.what == charges {
		f.looseNs += held62(d.units, d.intervalNs)
	}
}
