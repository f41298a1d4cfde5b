// Package flowtest reckons a funnel from all that has ever been charged, with the true units of holds once
// they are known. A Flow belongs to one goroutine.
package flowtest

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// MostDebtNs is the debt beyond which nothing is charged.
const MostDebtNs = int64(1) << 62

// Flow is what a funnel was charged since it was last empty. The zero Flow is empty.
type Flow struct {
	tatNs, intervalNs int64 // before the deeds
	deeds             []deed
	slackNs           int64 // by which rebases may round
}

// deed is a charge, or what else has changed a funnel.
type deed struct {
	kind       kind
	atNs       int64
	units      int64
	intervalNs int64
	cutNs      *big.Int // of a rebase, what it cut off
	hold       uint64   // number of the hold that may still return units; 0 for none
}

type kind uint8

const (
	charge kind = iota
	refund
	rebase
)

// Clone returns an independent copy.
func (f *Flow) Clone() Flow {
	own := *f
	own.deeds = slices.Clone(f.deeds)
	return own
}

// Charge charges units, for a hold by its number, or for none by 0.
func (f *Flow) Charge(nowNs, units, intervalNs int64, hold uint64) {
	f.deeds = append(f.deeds, deed{atNs: nowNs, units: units, intervalNs: intervalNs, hold: hold})
}

// Hold makes the last charge one for a hold.
func (f *Flow) Hold(hold uint64) { f.deeds[len(f.deeds)-1].hold = hold }

// Refund gives units back, as many as are left.
func (f *Flow) Refund(nowNs, units, intervalNs int64) {
	f.deeds = append(f.deeds, deed{kind: refund, atNs: nowNs, units: units, intervalNs: intervalNs})
}

// Rebase makes the debt one of another interval: as many units, rounded up, but at most a full funnel, or the
// debt as it is. What it cuts off stays so when units that were held are returned.
func (f *Flow) Rebase(nowNs, intervalNs, toleranceNs int64) {
	debtNs, fromNs := f.Debt(nowNs)
	if debtNs == 0 || fromNs == intervalNs {
		return
	}
	of := deed{kind: rebase, atNs: nowNs, intervalNs: intervalNs, cutNs: scaled(debtNs, fromNs, intervalNs)}
	of.cutNs.Sub(of.cutNs, big.NewInt(capped(of.cutNs, max(toleranceNs, debtNs))))
	f.slackNs = slack(f.slackNs, fromNs, intervalNs)
	f.deeds = append(f.deeds, of)
}

// End makes a hold's charge that of the units used, but no more than it was.
func (f *Flow) End(hold uint64, used int64) {
	for i := range f.deeds {
		if d := &f.deeds[i]; d.hold == hold {
			d.units, d.hold = min(d.units, used), 0
		}
	}
}

// TAT returns when the funnel is empty, and the interval of its debt.
func (f *Flow) TAT() (tatNs, intervalNs int64) {
	tatNs, intervalNs = f.tatNs, f.intervalNs
	for i := range f.deeds {
		tatNs, intervalNs = f.deeds[i].after(tatNs, intervalNs)
	}
	return tatNs, intervalNs
}

// Debt is TAT with the time until then.
func (f *Flow) Debt(nowNs int64) (debtNs, intervalNs int64) {
	tatNs, intervalNs := f.TAT()
	return max(0, tatNs-nowNs), intervalNs
}

// Seen returns the debt by a rule, and by what it may differ as rebases round.
func (f *Flow) Seen(nowNs, intervalNs, toleranceNs int64) (debtNs, slackNs int64) {
	debtNs, fromNs := f.Debt(nowNs)
	slackNs = f.slackNs
	if debtNs > 0 && fromNs != intervalNs {
		debtNs = capped(scaled(debtNs, fromNs, intervalNs), max(toleranceNs, debtNs))
		slackNs = slack(slackNs, fromNs, intervalNs)
	}
	return debtNs, slackNs
}

// Fold forgets the deeds of an empty funnel, and joins those before the first hold.
func (f *Flow) Fold(nowNs int64) {
	if tatNs, intervalNs := f.TAT(); tatNs+f.slackNs <= nowNs {
		*f = Flow{intervalNs: intervalNs}
		return
	}
	n := 0
	for ; n < len(f.deeds) && f.deeds[n].hold == 0; n++ {
		f.tatNs, f.intervalNs = f.deeds[n].after(f.tatNs, f.intervalNs)
	}
	f.deeds = slices.Clone(f.deeds[n:])
}

// Shift adds to every time.
func (f *Flow) Shift(byNs int64) {
	f.tatNs += byNs
	for i := range f.deeds {
		f.deeds[i].atNs += byNs
	}
}

// after returns what a deed leaves.
func (d *deed) after(tatNs, intervalNs int64) (newTATNs, newIntervalNs int64) {
	debtNs := max(0, tatNs-d.atNs)
	switch d.kind {
	case charge:
		debtNs += min(product(d.units, d.intervalNs), max(debtNs, MostDebtNs)-debtNs)
	case refund:
		debtNs -= min(debtNs, product(d.units, d.intervalNs))
	case rebase:
		whole := scaled(debtNs, intervalNs, d.intervalNs)
		debtNs = max(0, capped(whole.Sub(whole, d.cutNs), math.MaxInt64))
	}
	return d.atNs + debtNs, d.intervalNs
}

// product returns a product, at most MostDebtNs.
func product(a, b int64) int64 {
	if hi, lo := bits.Mul64(uint64(a), uint64(b)); hi == 0 && lo <= uint64(MostDebtNs) {
		return int64(lo)
	}
	return MostDebtNs
}

// scaled returns a debt by another interval.
func scaled(debtNs, fromNs, toNs int64) *big.Int {
	of := new(big.Int).Mul(big.NewInt(debtNs), big.NewInt(toNs))
	if fromNs == toNs || fromNs == 0 {
		return big.NewInt(debtNs)
	}
	return of.Add(of, big.NewInt(fromNs-1)).Div(of, big.NewInt(fromNs))
}

func capped(n *big.Int, most int64) int64 {
	if n.Cmp(big.NewInt(most)) > 0 {
		return most
	}
	return n.Int64()
}

func slack(ns, fromNs, toNs int64) int64 { return ns*((toNs+fromNs-1)/fromNs) + 1 }
