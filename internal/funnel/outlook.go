package funnel

// Outlook is what becomes of a funnel that nobody asks: Result's figures, but exact.
type Outlook struct {
	Level   float64 // units that it holds now; beyond its capacity where it was filled by a larger limit
	FreeNs  uint64  // until one unit passes
	EmptyNs uint64  // until it is empty
}

// Outlook returns the outlook of a funnel of NewLimit's whose state is tatNs.
func (l Limit) Outlook(tatNs, nowNs int64) Outlook {
	debtNs := since(nowNs, tatNs)
	return Outlook{
		Level:   float64(debtNs) / float64(l.intervalNs),
		FreeNs:  debtNs - min(debtNs, l.toleranceNs-l.intervalNs),
		EmptyNs: debtNs,
	}
}
